package handler

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/stores"
)

func TestModeText(t *testing.T) {
	for m, name := range map[Mode]string{Enforce: "enforce", Report: "report", Signal: "signal"} {
		require.Equal(t, name, m.String())
		text, err := m.MarshalText()
		require.NoError(t, err)
		var back Mode
		require.NoError(t, back.UnmarshalText(text))
		require.Equal(t, m, back)
	}
	var m Mode
	require.ErrorIs(t, m.UnmarshalText([]byte("Enforce")), stores.ErrInvalid)
	require.ErrorIs(t, json.Unmarshal([]byte(`"off"`), &m), stores.ErrInvalid)
	_, err := Mode(3).MarshalText()
	require.ErrorIs(t, err, stores.ErrInvalid)
	require.Equal(t, "Mode(3)", Mode(3).String())
}

func TestReportRefusesNobody(t *testing.T) {
	bothPaths(t, func(t *testing.T, store stores.Store) {
		var refused int
		report := byIP("trial", 2)
		report.Mode = Report
		g := guardOf(t, Config{Store: store, Policies: []Policy{report, byIP("p", 5)}, Observe: func(_ context.Context, v Verdict) {
			if o, ok := v.Of("trial"); ok && !o.Allowed {
				refused++
			}
		}})
		require.Equal(t, 5, passes(t, g, 20, func(int) *http.Request { return get(client) }))
		require.GreaterOrEqual(t, refused, 3, "what it would have done is told")
		w := serve(g.Handler(ok), get(another))
		require.NotContains(t, w.Header().Get("RateLimit"), "trial")
		require.NotContains(t, w.Header().Get("RateLimit-Policy"), "trial")
	})
}

// The endpoint answers alike for every state of the target, on every path, byte
// by byte, and the policy still silences the mail.
func TestSignalTellsNothing(t *testing.T) {
	bothPaths(t, func(t *testing.T, store stores.Store) {
		reset := Policy{Name: "reset-mail", Limit: stores.Cooldown(15 * time.Minute), Key: ByHeader("X-Email").Email(), Mode: Signal, ShowQuota: true}
		g := guardOf(t, Config{Store: store, Policies: []Policy{reset, byIP("ip", 1000)}})
		mails := 0
		h := g.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if v, _ := FromContext(r.Context()); v.Allowed {
				mails++
			}
			_, _ = w.Write([]byte("If the address is known, a mail is on its way."))
		}))
		var first http.Header
		for i := range 40 {
			w := serve(h, get(client, "X-Email", []string{"a@b.example", "c@d.example"}[i%2]))
			require.Equal(t, http.StatusOK, w.Code)
			require.Equal(t, "If the address is known, a mail is on its way.", w.Body.String())
			require.NotContains(t, w.Header().Get("RateLimit-Policy"), "reset-mail")
			header := w.Header().Clone()
			header.Del("RateLimit") // counts the caller's own requests
			if first == nil {
				first = header
			}
			require.Equal(t, first, header)
		}
		require.Equal(t, 2, mails)
		if s, ok := store.(*sharedStore); ok && s.fail == nil {
			require.Equal(t, 80, s.calls(), "no refusal of the mailbox is answered faster, from memory")
		}
	})
}

func TestFromContext(t *testing.T) {
	_, found := FromContext(t.Context())
	require.False(t, found)

	var v Verdict
	seen := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		v, found = FromContext(r.Context())
	})
	plain := onMemory(t, byIP("plain", 100))
	serve(plain.Handler(seen), get(client))
	require.False(t, found, "nothing is paid for what nobody asked for")

	verdicts := guardOf(t, Config{Verdicts: true, Policies: []Policy{byIP("outer", 100)}})
	signal := byIP("inner", 1)
	signal.Mode = Signal
	inner, err := verdicts.With(signal)
	require.NoError(t, err)
	serve(verdicts.Handler(seen), get(client))
	require.True(t, found)
	require.Equal(t, "outer", v.Outcomes[0].Policy)
	serve(verdicts.Handler(inner.Handler(plain.Handler(seen))), get(client))
	require.Equal(t, "inner", v.Outcomes[0].Policy, "the innermost one that puts it there")
	serve(inner.Handler(seen), get(client))
	require.False(t, v.Allowed)
	require.Zero(t, v.Status)
	require.Positive(t, v.RetryAfter())
	require.NoError(t, v.Reset(t.Context(), "inner"))
	kept := v
	for range 50 {
		serve(verdicts.Handler(ok), get(another))
	}
	require.Equal(t, kept, v, "a Verdict that was handed out stays as it is")
}

type contextKey struct{}

func TestContextKeepsWhatOthersPutThere(t *testing.T) {
	g := guardOf(t, Config{Verdicts: true, Policies: []Policy{byIP("p", 100)}})
	r := get(client)
	serve(g.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		require.Equal(t, 7, r.Context().Value(contextKey{}))
		derived, cancel := context.WithCancel(r.Context())
		defer cancel()
		v, found := FromContext(derived)
		require.True(t, found)
		require.True(t, v.Allowed)
	})), r.WithContext(context.WithValue(r.Context(), contextKey{}, 7)))
}
