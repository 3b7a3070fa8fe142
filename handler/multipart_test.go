package handler

import (
	"bytes"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// A server deletes what a visitor uploaded when the handler returns, if the request
// that it made has the form: files left behind fill the disk, which on Cloud Run is
// memory.
func TestUploadsCanBeDeleted(t *testing.T) {
	parse := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { require.NoError(t, r.ParseMultipartForm(1)) })
	refused, signal := byIP("refused", 1), byIP("signal", 1)
	refused.Refused, signal.Mode = parse, Signal
	verdicts := guardOf(t, Config{Verdicts: true, Policies: []Policy{byIP("p", 100)}})
	for name, h := range map[string]http.Handler{
		"plain":    onMemory(t, byIP("p", 100)).Handler(parse),
		"verdicts": verdicts.Handler(parse),
		"signal":   onMemory(t, signal).Handler(parse),
		"nested":   verdicts.Handler(onMemory(t, signal).Handler(parse)),
		"refused":  exhausted(t, Config{Policies: []Policy{refused}}),
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			t.Setenv("TMPDIR", dir)
			r := upload(t)
			serve(h, r)
			files, err := os.ReadDir(dir)
			require.NoError(t, err)
			require.Len(t, files, 1, "the test needs a file")
			require.NotNil(t, r.MultipartForm)
			require.NoError(t, r.MultipartForm.RemoveAll()) // as net/http's server does
			files, err = os.ReadDir(dir)
			require.NoError(t, err)
			require.Empty(t, files)
		})
	}
}

// upload is a form with a file that is too large for the memory it is given.
func upload(t testing.TB) *http.Request {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	f, err := w.CreateFormFile("file", "file")
	require.NoError(t, err)
	_, err = f.Write(make([]byte, 1<<20))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	r := httptest.NewRequest(http.MethodPost, "/", &b)
	r.RemoteAddr = client
	r.Header.Set("Content-Type", w.FormDataContentType())
	return r
}
