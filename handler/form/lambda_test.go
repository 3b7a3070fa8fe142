package form_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/handler/form"
	"github.com/sallyport/sallyport/lambda"
)

// Behind a Lambda function the same form works as behind a server, with a body in base64
// as with one in plain text.
func TestBehindLambda(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, err := form.New(form.Config{ID: "contact", Secret: []byte("32 random bytes, of the environment"), Decoy: http.RedirectHandler("/thanks", http.StatusSeeOther)})
		require.NoError(t, err)
		var got []string
		function := lambda.HTTP(f.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			got = append(got, r.PostFormValue("message"))
			http.Redirect(w, r, "/thanks", http.StatusSeeOther)
		})))
		post := func(body, flag string) string {
			event := fmt.Sprintf(`{"version":"2.0","rawPath":"/contact","headers":{"content-type":"application/x-www-form-urlencoded","accept":"text/html"},
				"requestContext":{"domainName":"x.execute-api.us-east-1.amazonaws.com","http":{"method":"POST","path":"/contact","sourceIp":"192.0.2.1"}},"body":%q,"isBase64Encoded":%s}`, body, flag)
			answer, err := function.Invoke(t.Context(), []byte(event))
			require.NoError(t, err)
			var parsed struct{ StatusCode int }
			require.NoError(t, json.Unmarshal(answer, &parsed))
			return fmt.Sprint(parsed.StatusCode)
		}
		token := regexp.MustCompile(`value="([^"]{20,})"`).FindStringSubmatch(f.Fields())[1]
		values := url.Values{"form-token": {token}, "message": {"Hello"}}.Encode()
		require.Equal(t, "303", post(values, "false"))
		require.Empty(t, got, "too fast")
		time.Sleep(3 * time.Second)
		require.Equal(t, "303", post(values, "false"))
		require.Equal(t, "303", post(base64.StdEncoding.EncodeToString([]byte(values)), "true"))
		require.Equal(t, []string{"Hello", "Hello"}, got)
		time.Sleep(3 * time.Hour)
		require.Equal(t, "409", post(values, "false"))
	})
}
