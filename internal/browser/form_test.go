package browser

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
)

// manners are ways in which people use a form.
var manners = []struct {
	name   string
	script bool
	write  func(name, email, message string) []chromedp.Action[chromedp.Void]
}{
	{"by mouse, with script", true, byMouse},
	{"by keyboard, without script", false, byKeyboard},
}

func byMouse(name, email, message string) []chromedp.Action[chromedp.Void] {
	return []chromedp.Action[chromedp.Void]{
		chromedp.Click(chromedp.CSS("label[for=name]")), chromedp.KeyEvent(name),
		chromedp.Click(chromedp.CSS("#email")), chromedp.KeyEvent(email),
		chromedp.Click(chromedp.CSS("#message")), chromedp.KeyEvent(message),
	}
}

// byKeyboard goes where the Tab key leads.
func byKeyboard(name, email, message string) []chromedp.Action[chromedp.Void] {
	return []chromedp.Action[chromedp.Void]{
		chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(name),
		chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(email),
		chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(message),
	}
}

// visit loads the form, fills it in, lets that take as long as a person needs, sends it,
// and returns the status of the page that comes.
func visit(t *testing.T, ctx context.Context, url string, write func(name, email, message string) []chromedp.Action[chromedp.Void], takes time.Duration) int64 {
	t.Helper()
	require.NoError(t, chromedp.Do(ctx, chromedp.Navigate(url)))
	require.NoError(t, chromedp.Do(ctx, write("Ada Lovelace", "ada@example.com", "Do you ship to London?")...))
	require.Equal(t, []string{"Ada Lovelace", "ada@example.com", "Do you ship to London?"},
		evaluate[[]string](t, ctx, `["name", "email", "message"].map(id => document.getElementById(id).value)`))
	requireTrap(t, ctx)
	time.Sleep(takes)
	response, err := chromedp.RunResponse(ctx, chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(kb.Enter))
	require.NoError(t, err)
	return int64(response.Status)
}

// requireTrap checks that the honeypot is there, is empty, and is nothing that a person
// sees, or is led to.
func requireTrap(t *testing.T, ctx context.Context) {
	t.Helper()
	const trap = `document.querySelector("input[name^=subject_]")`
	require.Empty(t, evaluate[string](t, ctx, trap+".value"))
	require.True(t, evaluate[bool](t, ctx, trap+`.closest("[aria-hidden=true]") != null`))
	require.True(t, evaluate[bool](t, ctx, `(box => box.width <= 1 && box.height <= 1)(`+trap+`.closest("[aria-hidden=true]").getBoundingClientRect())`))
	require.Equal(t, "inset(50%)", evaluate[string](t, ctx, `getComputedStyle(`+trap+`.closest("[aria-hidden=true]")).clipPath`), "the Content-Security-Policy lets the style in")
}

// A person sends two messages, is thanked, and is told with the third when the next one
// may come. What he typed is still there.
func TestVisitor(t *testing.T) {
	for _, manner := range manners {
		t.Run(manner.name, func(t *testing.T) {
			ctx := open(t, manner.script)
			const fill = time.Second
			url, log := contactForm(t, "SALLYPORT_LIMIT=2/10m", "SALLYPORT_MIN_FILL="+fill.String())
			for sent := range 2 {
				require.EqualValues(t, 200, visit(t, ctx, url, manner.write, fill))
				require.Equal(t, "/thanks", evaluate[string](t, ctx, "location.pathname"))
				require.Contains(t, text(t, ctx), "Thank you\n")
				require.Equal(t, sent+1, log.messages())
			}
			// Whoever reloads the page sends nothing again.
			require.NoError(t, chromedp.Do(ctx, chromedp.Reload()))
			require.Contains(t, text(t, ctx), "Thank you\n")

			require.EqualValues(t, 429, visit(t, ctx, url, manner.write, fill))
			require.Regexp(t, `This one has not been sent\. Please try again in (9|10) minutes\.`, text(t, ctx))
			require.Equal(t, []string{"Ada Lovelace", "ada@example.com", "Do you ship to London?"},
				evaluate[[]string](t, ctx, `["name", "email", "message"].map(id => document.getElementById(id).value)`))
			requireTrap(t, ctx)
			require.Equal(t, 2, log.messages())
			if *screenshot != "" && manner.script {
				picture, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
				require.NoError(t, err)
				require.NoError(t, os.MkdirAll(filepath.Dir(*screenshot), 0o755))
				require.NoError(t, os.WriteFile(*screenshot, picture, 0o644))
			}
		})
	}
}

// The browser itself keeps an empty form back: nothing is sent, and nothing counted.
func TestEmptyForm(t *testing.T) {
	ctx := open(t, false)
	url, _ := contactForm(t)
	require.NoError(t, chromedp.Do(ctx, chromedp.Navigate(url), chromedp.Click(chromedp.CSS("button"))))
	require.Equal(t, "/", evaluate[string](t, ctx, "location.pathname"))
	require.Equal(t, "name", evaluate[string](t, ctx, "document.activeElement.id"), "it shows what is missing")
}

// Who is faster than a person, or fills in what no person sees, is thanked like one, and
// nothing comes of it.
func TestPrograms(t *testing.T) {
	ctx := open(t, true)
	t.Run("too fast", func(t *testing.T) {
		url, log := contactForm(t, "SALLYPORT_MIN_FILL=1h")
		require.EqualValues(t, 200, visit(t, ctx, url, byMouse, 0))
		require.Contains(t, text(t, ctx), "Thank you\n")
		require.Zero(t, log.messages())
	})
	t.Run("fills in the trap", func(t *testing.T) {
		url, log := contactForm(t, "SALLYPORT_MIN_FILL=0")
		require.NoError(t, chromedp.Do(ctx, chromedp.Navigate(url)))
		require.NoError(t, chromedp.Do(ctx, byMouse("Ada", "ada@example.com", "Hello")...))
		evaluate[string](t, ctx, `document.querySelector("input[name^=subject_]").value = "pills"`)
		response, err := chromedp.RunResponse(ctx, chromedp.Click(chromedp.CSS("button")))
		require.NoError(t, err)
		require.EqualValues(t, 200, response.Status)
		require.Contains(t, text(t, ctx), "Thank you\n")
		require.Zero(t, log.messages())
		require.EqualValues(t, 200, visit(t, ctx, url, byKeyboard, 0), "and without it, the message comes")
		require.Equal(t, 1, log.messages())
	})
}
