package memory

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/sallyport/sallyport/stores"
)

func benchmark(b *testing.B, maxKeys int, limit stores.Limit, keys []string) {
	s, err := New(Config{MaxKeys: maxKeys})
	if err != nil {
		b.Fatal(err)
	}
	ctx := context.Background()
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		if _, err := s.Take(ctx, stores.Hit{Key: keys[i], Limit: limit}); err != nil {
			b.Fatal(err)
		}
		if i++; i == len(keys) { // a division would be a tenth of what is measured
			i = 0
		}
	}
}

func names(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = "203.0.113." + strconv.Itoa(i)
	}
	return keys
}

func BenchmarkTake(b *testing.B) {
	wide, narrow := stores.FixedWindow(1<<40, time.Hour), stores.FixedWindow(5, time.Hour)
	b.Run("hot", func(b *testing.B) { benchmark(b, 0, wide, names(1)) })
	b.Run("refused", func(b *testing.B) { benchmark(b, 0, narrow, names(1)) })
	b.Run("10k", func(b *testing.B) { benchmark(b, 0, wide, names(10_000)) })
	flood := names(1 << 21)
	for _, maxKeys := range []int{1_000, 50_000, 1_000_000} {
		b.Run("flood/cap="+strconv.Itoa(maxKeys), func(b *testing.B) { benchmark(b, maxKeys, narrow, flood) })
	}
	once := stores.Cooldown(time.Hour)
	b.Run("flood/held", func(b *testing.B) { benchmark(b, 50_000, once, flood) })
	b.Run("clock", func(b *testing.B) {
		for b.Loop() {
			_ = time.Now()
		}
	})
}

func BenchmarkTakeEveryLimit(b *testing.B) {
	flood := names(1 << 17)
	for _, l := range ways {
		b.Run(l.String()+"/refused", func(b *testing.B) { benchmark(b, 0, l, names(1)) })
		b.Run(l.String()+"/flood", func(b *testing.B) { benchmark(b, 0, l, flood) })
		l.Quota, l.Window = 100_000, time.Second
		b.Run(l.String()+"/hot", func(b *testing.B) { benchmark(b, 0, l, names(1)) })
	}
}

func BenchmarkTakeParallel(b *testing.B) {
	s, _ := New(Config{})
	limit := stores.FixedWindow(1<<40, time.Hour)
	keys := names(10_000)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for i := 0; pb.Next(); i += 7 {
			_, _ = s.Take(context.Background(), stores.Hit{Key: keys[i%len(keys)], Limit: limit})
		}
	})
}

func BenchmarkColdStart(b *testing.B) {
	for b.Loop() {
		s, _ := New(Config{})
		_, _ = s.Take(context.Background(), stores.Hit{Key: "203.0.113.9", Limit: stores.FixedWindow(5, time.Hour)})
	}
}
