package webhook

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// No secret, no body, no id and no address is in an answer, a log line, an error or a key of
// the store, whatever goes wrong.
func TestSecretsStayInside(t *testing.T) {
	const raw = "marker of a secret, 32 bytes lon"
	secret := "whsec_" + base64.StdEncoding.EncodeToString([]byte(raw))
	markers := []string{raw, secret, secret[6:], hex.EncodeToString([]byte(raw)), "marker-of-an-id", "marker of a body", "marker of an error", "192.0.2.77"}
	log := &logged{}
	was := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	defer slog.SetDefault(was)

	store := newSharedStore(t)
	var mu sync.Mutex
	var seen strings.Builder
	record := func(call, key string) error {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintln(&seen, call, key)
		return nil
	}
	store.set(nil, record)
	rc := receiver(t, Config{Scheme: Standard(secret), Marks: guardOver(t, store), Valid: guardOver(t, store, everyone(5))},
		func(_ context.Context, d Delivery) error {
			if strings.HasSuffix(d.ID, "bad") {
				return errors.New("marker of an error: " + string(d.Body))
			}
			return nil
		})
	send := func(with, id string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		rc.ServeHTTP(w, request(signed(with, id, "marker of a body", time.Now()), "marker of a body", "192.0.2.77"))
		fmt.Fprintln(&seen, w.Code, w.Header(), w.Body)
		return w
	}
	require.Equal(t, 200, send(secret, "marker-of-an-id").Code)
	require.Equal(t, 500, send(secret, "marker-of-an-id-bad").Code)
	for i := range 20 {
		send(otherSecret, fmt.Sprint("marker-of-an-id", i))
		send(secret, fmt.Sprint("marker-of-an-id", i))
	}
	store.set(down, record)
	for i := range 20 {
		require.Equal(t, 503, send(secret, fmt.Sprint("marker-of-an-id-new", i)).Code)
	}
	_, err := New(Config{Scheme: Standard(secret, secret+"\n")}, rc.handle)
	fmt.Fprintln(&seen, err)
	_, err = New(Config{Scheme: Standard(secret, "whsec_"+raw)}, rc.handle)
	fmt.Fprintln(&seen, err)
	_, err = rc.scheme.Verify(nil, nil, time.Now())
	fmt.Fprintln(&seen, err)

	require.Contains(t, seen.String(), "take sallyport:webhook-busy:", "keys were seen")
	require.NotEmpty(t, log.String())
	for _, marker := range markers {
		require.NotContains(t, seen.String(), marker)
		require.NotContains(t, log.String(), marker)
	}
}
