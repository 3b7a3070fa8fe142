package browser

import (
	"bytes"
	"context"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/internal/upstashtest"
)

var screenshot = flag.String("screenshot", "", "where to keep a picture of a refusal: an absolute path that ends in .png")

// patience is when a test stops waiting for what has to happen.
const patience = 2 * time.Minute

// contactForm builds and runs the example, and returns its address and its log.
func contactForm(t *testing.T, env ...string) (string, *logged) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "contactform")
	out, err := exec.Command("go", "build", "-o", path, "../../examples/contactform").CombinedOutput()
	require.NoError(t, err, string(out))
	cmd := exec.Command(path)
	cmd.Env = append([]string{"PORT=0"}, env...)
	log := &logged{address: make(chan string, 1)}
	cmd.Stderr = log
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("log of the program:\n%s", log)
		}
	})
	select {
	case address := <-log.address:
		return "http://" + address, log
	case <-time.After(patience):
		t.Fatalf("the program does not listen:\n%s", log)
		return "", nil
	}
}

// logged is what the program logs. The address of its listener goes to address.
type logged struct {
	mu      sync.Mutex
	text    bytes.Buffer
	found   bool
	address chan string
}

var listening = regexp.MustCompile(`listening" address=(\S+)`)

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Write(p)
	if m := listening.FindSubmatch(l.text.Bytes()); m != nil && !l.found {
		l.found = true
		l.address <- string(m[1])
	}
	return len(p), nil
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// messages tells how many came.
func (l *logged) messages() int { return strings.Count(l.String(), "a message came") }

// open starts a browser with a profile of its own, which ends with the test.
func open(t *testing.T, script bool) context.Context {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		upstashtest.Missing(t, "chromium")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path),
		chromedp.UserDataDir(t.TempDir()),
		chromedp.WSURLReadTimeout(patience),
		// It has no business anywhere but on this machine.
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND , EXCLUDE 127.0.0.1"),
		chromedp.Flag("no-proxy-server", true),
	)
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // which root can't have
	}
	ctx, end := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(end)
	ctx, closeTab := chromedp.NewContext(ctx)
	t.Cleanup(closeTab)
	// The first step starts the browser, which lives as long as this context.
	require.NoError(t, chromedp.Do(ctx, chromedp.EmulateViewport(640, 720)))
	ctx, stop := context.WithTimeout(ctx, patience)
	t.Cleanup(stop)
	if !script {
		require.NoError(t, chromedp.Do(ctx, chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
			_, err := cdp.Call(ctx, target, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
			return err
		})))
	}
	require.NoError(t, chromedp.Do(ctx, chromedp.Navigate("data:text/html,<title>off</title><script>document.title='on'</script>")))
	title, err := chromedp.Run(ctx, chromedp.Title())
	require.NoError(t, err)
	require.Equal(t, map[bool]string{true: "on", false: "off"}[script], title, "scripts of pages")
	return ctx
}

// evaluate returns what an expression is on the page.
func evaluate[T any](t *testing.T, ctx context.Context, expression string) T {
	t.Helper()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression))
	require.NoError(t, err, expression)
	return value
}

// text is what a person reads on the page.
func text(t *testing.T, ctx context.Context) string {
	t.Helper()
	return evaluate[string](t, ctx, "document.body.innerText")
}
