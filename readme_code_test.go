package sallyport_test

import (
	"encoding/json"
	"go/format"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// newStore is what the README leaves to the reader of "Write your own store".
const newStore = `package mystore

import (
	"sync"

	"github.com/sallyport/sallyport/stores"
	"github.com/sallyport/sallyport/stores/memory"
)

var data = sync.OnceValues(func() (*memory.Store, error) { return memory.New(memory.Config{}) })

func New() (stores.Store, error) { return data() }
`

// Each piece of Go in the README is a whole file. Programs build, and tests pass.
// They are laid over this module, as if they stood in folders of it.
func TestReadmeCode(t *testing.T) {
	root, err := os.Getwd()
	require.NoError(t, err)
	code := blocks(paper(t, "README.md"), "go")
	require.Len(t, code, 6)
	for i, block := range code {
		name := "readme" + strconv.Itoa(i)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scratch := t.TempDir()
			replace := make(map[string]string)
			lay := func(file, text string) {
				real := filepath.Join(scratch, file)
				require.NoError(t, os.WriteFile(real, []byte(text), 0o600))
				replace[filepath.Join(root, name, file)] = real
			}
			pkg := regexp.MustCompile(`^package (\w+)\n`).FindStringSubmatch(block)
			require.NotNil(t, pkg, block)
			formatted(t, block)
			isTest := strings.Contains(block, `"testing"`)
			if isTest {
				lay("readme_test.go", block)
			} else {
				lay("readme.go", block)
			}
			if pkg[1] == "mystore" {
				lay("mystore.go", newStore)
			}
			overlay := filepath.Join(scratch, "overlay.json")
			text, err := json.Marshal(map[string]any{"Replace": replace})
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(overlay, text, 0o600))

			program := filepath.Join(scratch, "program")
			if !isTest {
				require.Equal(t, "main", pkg[1])
				run(t, root, "go", "build", "-overlay", overlay, "-o", program, "./"+name)
				return
			}
			run(t, root, "go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", program, "./"+name)
			out := run(t, scratch, program, "-test.v")
			require.Contains(t, out, "--- PASS: Test")
		})
	}
}

func formatted(t *testing.T, code string) {
	t.Helper()
	out, err := format.Source([]byte(code))
	require.NoError(t, err)
	require.Equal(t, string(out), code, "gofmt would change it")
}

func run(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s %s: %s", name, strings.Join(args, " "), out)
	return string(out)
}
