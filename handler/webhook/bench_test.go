package webhook

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// What a forgery costs is what an attacker can make us spend; the rest is what a
// delivery adds to its handler.
func BenchmarkServeHTTP(b *testing.B) {
	rc := receiver(b, Config{Marks: onMemory(b)}, (&counter{}).handle)
	run := func(name string, secret string, size int, id func(i int) string) {
		b.Run(name, func(b *testing.B) {
			body := strings.Repeat("x", size)
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				i++
				b.StopTimer()
				r := request(signed(secret, id(i), body, time.Now()), body, sender)
				w := httptest.NewRecorder()
				b.StartTimer()
				rc.ServeHTTP(w, r)
			}
		})
	}
	start := time.Now().UnixNano()
	for _, size := range []int{1 << 10, 1 << 20} {
		run(fmt.Sprintf("forged/%dKiB", size>>10), otherSecret, size, func(int) string { return "msg_1" })
		run(fmt.Sprintf("new/%dKiB", size>>10), testSecret, size, func(i int) string { return fmt.Sprint("msg_", start, size, i) })
		run(fmt.Sprintf("again/%dKiB", size>>10), testSecret, size, func(int) string { return "msg_1" })
	}
}
