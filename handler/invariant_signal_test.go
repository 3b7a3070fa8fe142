package handler

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/internal/fault"
	"github.com/sallyport/sallyport/stores"
	"github.com/sallyport/sallyport/stores/memory"
)

// target is the limit on what is asked for; no other policy of these tests has it.
var target = stores.FixedWindow(2, 15*time.Minute)

const mailbox = "a@b.example"

// targetStates are what a mailbox may be like when somebody asks about it: how it came to
// it is told by requests of others.
var targetStates = map[string]func(t *testing.T, s *signalScene){
	"never seen":         func(*testing.T, *signalScene) {},
	"one left":           func(_ *testing.T, s *signalScene) { s.others(1) },
	"used up":            func(_ *testing.T, s *signalScene) { s.others(2) },
	"hammered":           func(_ *testing.T, s *signalScene) { s.others(50) },
	"hammered, then old": func(_ *testing.T, s *signalScene) { s.others(50); time.Sleep(target.Window / 2) },
	"window over":        func(_ *testing.T, s *signalScene) { s.others(50); time.Sleep(target.Window) },
	"reset": func(t *testing.T, s *signalScene) {
		s.others(50)
		if err := s.guard.Reset(t.Context(), "reset-mail", mailbox); err != nil {
			require.ErrorIs(t, err, stores.ErrUnavailable)
		}
	},
	"its key is throttled": func(_ *testing.T, s *signalScene) { s.hot = true },
	"used up and throttled": func(_ *testing.T, s *signalScene) {
		s.others(2)
		s.hot = true
	},
	"another mailbox": func(_ *testing.T, s *signalScene) { s.others(50); s.mailbox = "c@d.example" },
	"no mailbox":      func(_ *testing.T, s *signalScene) { s.mailbox = "" },
	"no e-mail":       func(_ *testing.T, s *signalScene) { s.mailbox = "\xff@\"" },
}

// signalScene is an endpoint whose answer is to be the same for every mailbox.
type signalScene struct {
	guard   *Guard
	handler http.Handler
	shared  *sharedStore // nil on memory
	down    bool
	hot     bool // the target's key alone is throttled
	mailbox string
	mails   int
}

func (s *signalScene) fail(ctx context.Context, hit stores.Hit) error {
	if s.down {
		return down(ctx, hit)
	}
	if s.hot && hit.Limit == target {
		return &fault.Error{Kind: stores.ErrHotKey, Text: "hot key", Definite: true, KeyOnly: true}
	}
	return nil
}

// others has n strangers ask about the mailbox.
func (s *signalScene) others(n int) {
	for i := range n {
		serve(s.handler, from(fmt.Sprintf("192.0.2.%d:1", i), http.MethodPost, "/", "X-Email", mailbox))
	}
}

// signalCase is one way to configure it.
type signalCase struct {
	path   string
	style  HeaderStyle
	outage stores.Outage
	method string
	accept string
	first  bool // the Signal policy stands before those that refuse
	show   bool
	asked  int // requests that the caller has sent already; his quota is 3
}

func (c signalCase) scene(t *testing.T) *signalScene {
	s := &signalScene{mailbox: mailbox, down: c.path == "down"}
	var store stores.Store
	if c.path == "memory" {
		m, err := memory.New(memory.Config{})
		require.NoError(t, err)
		store = m
	} else {
		s.shared = newSharedStore(t)
		s.shared.fail = s.fail
		store = s.shared
	}
	mail := Policy{Name: "reset-mail", Limit: target, Key: ByHeader("X-Email").Email(), Mode: Signal, Outage: c.outage, ShowQuota: c.show}
	policies := []Policy{byIP("ip", 3), {Name: "all", Limit: stores.FixedWindow(1000, time.Hour), Key: Everyone()}}
	if c.first {
		policies = append([]Policy{mail}, policies...)
	} else {
		policies = append(policies, mail)
	}
	s.guard = guardOf(t, Config{Store: store, Policies: policies, Headers: c.style, KeySecret: []byte("a secret of tests")})
	s.handler = s.guard.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if v, _ := FromContext(r.Context()); v.Allowed {
			s.mails++
		}
		w.Header().Set("X-Own", "same")
		w.WriteHeader(http.StatusAccepted)
		_, _ = w.Write([]byte("If the address is known, a mail is on its way."))
	}))
	return s
}

// answer is everything that a caller sees, and how many calls to the shared store he
// waits for, -1 where that is told by the store itself: it is not asked about a key that
// it throttles.
func (c signalCase) answer(t *testing.T, prepare func(*testing.T, *signalScene)) (answer string, calls, mails int) {
	synctest.Test(t, func(t *testing.T) {
		s := c.scene(t)
		prepare(t, s)
		for range c.asked {
			serve(s.handler, from(client, c.method, "/", "X-Email", "elsewhere@d.example"))
		}
		s.mails = 0
		before := 0
		if s.shared != nil {
			before = s.shared.calls()
		}
		w := serve(s.handler, from(client, c.method, "/", "X-Email", s.mailbox, "Accept", c.accept))
		answer = fmt.Sprintf("%d %v %q", w.Code, w.Header(), w.Body)
		if calls = -1; c.path == "shared" && !s.hot {
			calls = s.shared.calls() - before
		}
		require.NotContains(t, answer, "reset-mail")
		require.NotContains(t, answer, `"all"`)
		mails = s.mails
	})
	return answer, calls, mails
}

// Whatever the mailbox is like, the answer is the same to the byte: status, header and
// body, on every path, in every style, whoever asks and however often he did; and
// nobody is answered sooner, or later, by a call to the store.
func TestSignalAnswersAlikeForEveryPairOfStates(t *testing.T) {
	for _, path := range []string{"memory", "shared", "down"} {
		for _, style := range []HeaderStyle{HeadersDraft8, HeadersLegacy, HeadersOff} {
			t.Run(fmt.Sprint(path, " ", style), func(t *testing.T) {
				var sent, silenced int
				for i := range 3 * 3 * 2 * 2 {
					c := signalCase{
						path: path, style: style,
						outage: stores.Outage(i % 3),
						method: []string{http.MethodGet, http.MethodHead, http.MethodPost}[i/3%3],
						first:  i/9%2 == 0,
						show:   i/18%2 == 0,
						accept: []string{"text/html", "application/json"}[i%2],
						asked:  []int{0, 2, 4}[(i+i/3)%3],
					}
					want, calls, mails := c.answer(t, targetStates["never seen"])
					for name, prepare := range targetStates {
						got, waited, told := c.answer(t, prepare)
						require.Equal(t, want, got, "%s, %+v", name, c)
						if waited >= 0 {
							require.Equal(t, calls, waited, "%s, %+v", name, c)
						}
						if told < mails {
							silenced++
						}
						sent += told
					}
				}
				require.Positive(t, sent, "the mail goes out")
				require.Positive(t, silenced, "and the policy silences it")
			})
		}
	}
}

// No header shows what others did: with policies on a target and on everyone that
// enforce, an answer that is let through is the same however much of them is used.
func TestOnlyTheCallersOwnUseShows(t *testing.T) {
	for _, path := range []string{"memory", "shared", "down"} {
		for _, style := range []HeaderStyle{HeadersDraft8, HeadersLegacy} {
			for _, show := range []bool{false, true} {
				answers := make(map[string]bool)
				for used := range 5 {
					synctest.Test(t, func(t *testing.T) {
						s := signalCase{path: path}.scene(t)
						g, err := s.guard.With(byIP("ip", 100),
							Policy{Name: "account", Limit: stores.FixedWindow(10, time.Hour), Key: ByHeader("X-Email").Email(), ShowQuota: show},
							Policy{Name: "everybody", Limit: stores.FixedWindow(20, time.Hour), Key: Everyone(), ShowQuota: show})
						require.NoError(t, err)
						styled := *g
						styled.headers = style
						h := styled.Handler(ok)
						for i := range used {
							require.Equal(t, http.StatusOK, serve(h, get(fmt.Sprintf("192.0.2.%d:1", i), "X-Email", mailbox)).Code)
						}
						w := serve(h, get(client, "X-Email", mailbox))
						answers[fmt.Sprint(w.Code, w.Header(), w.Body)] = true
					})
				}
				want := 1
				if show {
					want = 5
				}
				require.Len(t, answers, want, "%s, style %d, ShowQuota %v", path, style, show)
			}
		}
	}
}
