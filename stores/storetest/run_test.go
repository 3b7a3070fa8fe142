package storetest

import (
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/stores"
)

func TestRunInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		Run(t, sameStore(newReference("", build{})))
		require.Greater(t, time.Since(start), 10*time.Second, "time passes, though none is spent")
	})
}

func TestRunWithoutABubble(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some ten seconds")
	}
	for _, name := range []string{"whole milliseconds", "unsure at the first hits"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			Run(t, sameStore(newReference("", builds[name])))
		})
	}
}

// movable is a backend over r whose time Sleep moves at once, as that of an
// embedded server can be.
func movable(r *reference) Backend {
	var (
		mu      sync.Mutex
		skipped time.Duration
	)
	r.clock = func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return time.Now().Add(skipped)
	}
	return Backend{
		Open: func(testing.TB) stores.Store { return r },
		Sleep: func(d time.Duration) {
			mu.Lock()
			defer mu.Unlock()
			skipped += d
		},
	}
}

func TestRunWithTheBackendsTime(t *testing.T) {
	for name, b := range builds {
		t.Run(name, func(t *testing.T) { Run(t, movable(newReference("", b))) })
	}
}

// child, when set, makes the tests below run a wrong store in earnest.
const child = "STORETEST_CHILD"

func TestWrongStoreChild(t *testing.T) {
	wrong := newReference("Refund goes below zero", build{})
	switch os.Getenv(child) {
	case "subtests":
		Run(t, movable(wrong))
	case "bubble":
		synctest.Test(t, func(t *testing.T) { Run(t, sameStore(wrong)) })
	case "no open":
		Run(t, Backend{})
	default:
		t.Skip("runs in a child process only")
	}
}

func runChild(t *testing.T, how string) string {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestWrongStoreChild$", "-test.v")
	cmd.Env = append(os.Environ(), child+"="+how)
	out, err := cmd.CombinedOutput()
	var failed *exec.ExitError
	require.ErrorAs(t, err, &failed, "a wrong store fails the test: %s", out)
	return string(out)
}

const broken = "Refund/Refund never goes below zero used"

func TestRunFailsInSubtests(t *testing.T) {
	t.Parallel()
	out := runChild(t, "subtests")
	require.Contains(t, out, "--- FAIL: TestWrongStoreChild/"+strings.ReplaceAll(broken, " ", "_"))
	require.Contains(t, out, "--- PASS: TestWrongStoreChild/TakeOwing/", "later clauses run all the same")
	require.Contains(t, out, "refund.go:", "the failure points at the line of the clause: %s", out)
}

func TestRunFailsInABubble(t *testing.T) {
	t.Parallel()
	out := runChild(t, "bubble")
	require.Contains(t, out, broken+": Take 5/1h: ")
	require.Contains(t, out, "Refund/parallel refunds all count, and never go below zero: ", "later clauses run all the same")
	require.Contains(t, out, "refund.go:", "the failure points at the line of the clause: %s", out)
}

func TestRunWantsOpen(t *testing.T) {
	t.Parallel()
	require.Contains(t, runChild(t, "no open"), "Backend.Open is nil")
}
