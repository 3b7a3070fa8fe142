package sallyport_test

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/sallyport/sallyport"

// pkg is what "go list" says of a package.
type pkg struct {
	ImportPath   string
	Dir          string
	Name         string
	Standard     bool
	GoFiles      []string
	Imports      []string
	Deps         []string
	TestGoFiles  []string
	XTestGoFiles []string
}

// own is the path below the module's, "" for the root, or the whole path of a
// package of others.
func (p pkg) own() string { return own(p.ImportPath) }

func own(path string) string {
	if path == module {
		return ""
	}
	return strings.TrimPrefix(path, module+"/")
}

func goList(t *testing.T, args ...string) []pkg {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list", "-json=ImportPath,Dir,Name,Standard,GoFiles,Imports,Deps,TestGoFiles,XTestGoFiles"}, args...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, stderr.String())
	var pkgs []pkg
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		err := d.Decode(&p)
		if err == io.EOF {
			return pkgs
		}
		require.NoError(t, err)
		pkgs = append(pkgs, p)
	}
}

var variableName = regexp.MustCompile(`^(?:SALLYPORT|UPSTASH|KV|AWS)_[A-Z0-9_]+$|^PORT$|^K_SERVICE$`)

// variablesRead are the environment variables whose names stand as whole strings in
// the code of the packages and of what they link of this module.
func variablesRead(t *testing.T, packages ...string) []string {
	t.Helper()
	var names []string
	for _, p := range goList(t, append([]string{"-deps"}, packages...)...) {
		if p.ImportPath != module && p.own() == p.ImportPath {
			continue
		}
		for _, file := range p.GoFiles {
			parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, file), nil, 0)
			require.NoError(t, err)
			ast.Inspect(parsed, func(n ast.Node) bool {
				if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
					if s, err := strconv.Unquote(lit.Value); err == nil && variableName.MatchString(s) && !slices.Contains(names, s) {
						names = append(names, s)
					}
				}
				return true
			})
		}
	}
	slices.Sort(names)
	return names
}
