package lambda_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"mime/multipart"
	"net/http"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/handler"
	"github.com/sallyport/sallyport/lambda"
)

// An instance's /tmp is small and outlives the invocation: what was uploaded into it
// goes when the handler returns, however it does.
func TestUploadsAreDeleted(t *testing.T) {
	for name, abort := range map[string]bool{"returns": false, "aborts": true} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			t.Setenv("TMPDIR", dir)
			parse := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				require.NoError(t, r.ParseMultipartForm(1))
				files, err := os.ReadDir(dir)
				require.NoError(t, err)
				require.Len(t, files, 1, "the test needs a file")
				if abort {
					panic(http.ErrAbortHandler)
				}
			})
			verdicts := newGuard(t, fivePerHour, func(cfg *handler.Config) { cfg.Verdicts = true })
			for _, h := range []http.Handler{parse, newGuard(t, fivePerHour).Handler(parse), verdicts.Handler(parse)} {
				_, err := lambda.HTTP(h).Invoke(context.Background(), encode(t, upload(t)))
				require.Equal(t, abort, err != nil)
				files, err := os.ReadDir(dir)
				require.NoError(t, err)
				require.Empty(t, files)
			}
		})
	}
}

// upload is an event with a form whose file is too large for the memory it is given.
func upload(t testing.TB) object {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	f, err := w.CreateFormFile("file", "file")
	require.NoError(t, err)
	_, err = f.Write(make([]byte, 1<<20))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	ev := put(put(awsEvent(t, "lambda-urls-request.json"), "body", base64.StdEncoding.EncodeToString(b.Bytes())), "isBase64Encoded", true)
	return put(ev, "headers", object{"content-type": w.FormDataContentType()})
}
