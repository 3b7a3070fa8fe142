package sallyport_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/handler"
	"github.com/sallyport/sallyport/stores"
	"github.com/sallyport/sallyport/stores/memory"
)

func paper(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	return string(text)
}

var fence = regexp.MustCompile("(?ms)^```([a-z]*)\n(.*?)^```$")

// blocks are the fenced pieces of a text in this language.
func blocks(text, language string) (found []string) {
	for _, m := range fence.FindAllStringSubmatch(text, -1) {
		if m[1] == language {
			found = append(found, m[2])
		}
	}
	return found
}

// cells are the rows of a text's tables by their first cell.
func cells(text string) map[string][]string {
	rows := make(map[string][]string)
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "| ") && strings.HasSuffix(line, " |") {
			row := strings.Split(line[2:len(line)-2], " | ")
			rows[row[0]] = row[1:]
		}
	}
	return rows
}

// The answer that the README shows is the answer, byte for byte.
func TestReadmeAnswer(t *testing.T) {
	shown := blocks(paper(t, "README.md"), "http")
	require.Len(t, shown, 1)
	synctest.Test(t, func(t *testing.T) {
		counters, err := memory.New(memory.Config{})
		require.NoError(t, err)
		guard, err := handler.New(handler.Config{Store: counters, ClientIP: handler.Direct(), Policies: []handler.Policy{
			{Name: "contact-form", Limit: stores.FixedWindow(5, 10*time.Minute), Key: handler.ByIP()},
		}})
		require.NoError(t, err)
		h := guard.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		var w *httptest.ResponseRecorder
		for range 6 {
			w = httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest("POST", "/contact", nil))
			if w.Code == http.StatusOK {
				time.Sleep((600 - 412) * time.Second / 5)
			}
		}
		answer := fmt.Sprintf("HTTP/1.1 %d %s\n", w.Code, http.StatusText(w.Code))
		for _, name := range slices.Sorted(maps.Keys(w.Header())) {
			for _, line := range w.Header()[name] {
				answer += name + ": " + line + "\n"
			}
		}
		require.Equal(t, shown[0], answer+"\n"+w.Body.String())
	})
}

// Every variable that the code reads is in the README's table, and no other.
func TestReadmeVariables(t *testing.T) {
	text := paper(t, "README.md")
	_, section, found := strings.Cut(text, "\n## Configuration by environment\n")
	require.True(t, found)
	section, _, _ = strings.Cut(section, "\n## ")
	var told []string
	for _, m := range regexp.MustCompile("`([A-Z_]+)`").FindAllStringSubmatch(section, -1) {
		if variableName.MatchString(m[1]) && !slices.Contains(told, m[1]) {
			told = append(told, m[1])
		}
	}
	require.ElementsMatch(t, variablesRead(t, "./..."), told)
	// And whatever is said of them elsewhere is about one of these.
	for _, m := range regexp.MustCompile("`([A-Z_]+)`").FindAllStringSubmatch(text, -1) {
		if variableName.MatchString(m[1]) {
			require.Contains(t, told, m[1])
		}
	}
}

// Links between the papers lead somewhere, and the targets of make are there.
func TestPapersPointAtWhatIsThere(t *testing.T) {
	makefile := paper(t, "Makefile")
	for _, name := range []string{"README.md", "CONTRIBUTING.md", "CHANGELOG.md"} {
		text := paper(t, name)
		anchors := make(map[string]bool)
		for _, m := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
			anchor := regexp.MustCompile(`[^a-z0-9 -]`).ReplaceAllString(strings.ToLower(m[1]), "")
			anchors[strings.ReplaceAll(anchor, " ", "-")] = true
		}
		for _, m := range regexp.MustCompile(`\]\(([^)]+)\)`).FindAllStringSubmatch(text, -1) {
			switch target := m[1]; {
			case strings.HasPrefix(target, "https://"):
			case strings.HasPrefix(target, "#"):
				require.True(t, anchors[target[1:]], "%s has no heading %s", name, target)
			default:
				_, err := os.Stat(filepath.FromSlash(target))
				require.NoError(t, err, "%s links to it", name)
			}
		}
		for _, m := range regexp.MustCompile("(?m)(?:^|`)make ([a-z-]+)").FindAllStringSubmatch(text, -1) {
			require.Regexp(t, `(?m)^`+m[1]+`:`, makefile, "%s says make %s", name, m[1])
		}
	}
}

// The papers are in ASCII, so that they look the same everywhere, and short of wide lines
// where no table or answer needs one.
func TestPapersArePlain(t *testing.T) {
	for _, name := range []string{"README.md", "CONTRIBUTING.md", "CHANGELOG.md", "template.yaml", "doc.go"} {
		for i, line := range strings.Split(paper(t, name), "\n") {
			for _, c := range line {
				require.Less(t, c, rune(0x7f), "%s:%d", name, i+1)
			}
			require.Equal(t, strings.TrimRight(line, " \t"), line, "%s:%d", name, i+1)
		}
	}
}
