package dynamo

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/internal/dynamotest"
	"github.com/sallyport/sallyport/stores"
)

func setEnv(t *testing.T, changes map[string]string) {
	t.Helper()
	env := map[string]string{
		"SALLYPORT_TABLE": dynamotest.Table, "AWS_REGION": dynamotest.Region, "AWS_DEFAULT_REGION": "",
		"AWS_ACCESS_KEY_ID": dynamotest.AccessKeyID, "AWS_SECRET_ACCESS_KEY": dynamotest.SecretAccessKey, "AWS_SESSION_TOKEN": dynamotest.SessionToken,
		"AWS_ENDPOINT_URL": "", "AWS_ENDPOINT_URL_DYNAMODB": "", "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "",
	}
	for name, value := range changes {
		env[name] = value
	}
	for name, value := range env {
		t.Setenv(name, value)
	}
}

func TestFromEnvFailsLoudly(t *testing.T) {
	for _, tt := range []struct{ name, value, want string }{
		{"SALLYPORT_TABLE", "", "SALLYPORT_TABLE"},
		{"SALLYPORT_TABLE", "x", "1 bytes"},
		{"AWS_REGION", "", "AWS_REGION nor AWS_DEFAULT_REGION"},
		{"AWS_ACCESS_KEY_ID", "", "AWS_ACCESS_KEY_ID"},
		{"AWS_ACCESS_KEY_ID", "", "config package"},
		{"AWS_SECRET_ACCESS_KEY", "", "AWS_SECRET_ACCESS_KEY"},
		{"AWS_ENDPOINT_URL", "http://10.0.0.1:8000", "AWS_ENDPOINT_URL: want https"},
		{"AWS_ENDPOINT_URL_DYNAMODB", "http://dynamodb.example.com", "AWS_ENDPOINT_URL_DYNAMODB: want https"},
		{"AWS_ENDPOINT_URL_DYNAMODB", "http://localhost.example.com", "want https"},
		{"AWS_ENDPOINT_URL_DYNAMODB", "localhost:8000", "no plain URL"},
		{"AWS_ENDPOINT_URL_DYNAMODB", "https://user:secret@example.com", "no plain URL"},
		{"AWS_ENDPOINT_URL_DYNAMODB", "https://example.com/?a=b", "no plain URL"},
		{"AWS_ENDPOINT_URL_DYNAMODB", "://", "no plain URL"},
	} {
		t.Run(tt.name+"="+tt.value, func(t *testing.T) {
			setEnv(t, map[string]string{tt.name: tt.value})
			s, err := FromEnv()
			require.ErrorIs(t, err, stores.ErrMisconfigured)
			require.ErrorContains(t, err, tt.want)
			require.NotContains(t, err.Error(), "secret@")
			require.Nil(t, s)
		})
	}
}

func TestFromEnv(t *testing.T) {
	server := dynamotest.New(t)
	url := server.Listen(t)
	for name, changes := range map[string]map[string]string{
		"general endpoint":  {"AWS_ENDPOINT_URL": url},
		"specific endpoint": {"AWS_ENDPOINT_URL": "https://dynamodb.invalid", "AWS_ENDPOINT_URL_DYNAMODB": url},
		"default region":    {"AWS_ENDPOINT_URL": url, "AWS_REGION": "", "AWS_DEFAULT_REGION": "eu-central-1"},
		"no session token":  {"AWS_ENDPOINT_URL": url, "AWS_SESSION_TOKEN": ""},
	} {
		t.Run(name, func(t *testing.T) {
			setEnv(t, changes)
			s, err := FromEnv()
			require.NoError(t, err)
			require.True(t, take(t, s, hit(name, 1, time.Minute)).Allowed)
			require.False(t, take(t, s, hit(name, 1, time.Minute)).Allowed)
		})
	}
	for name, changes := range map[string]map[string]string{
		"the service":      {},
		"ignored endpoint": {"AWS_ENDPOINT_URL": "http://10.0.0.1", "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "true"},
	} {
		t.Run(name, func(t *testing.T) {
			setEnv(t, changes)
			_, err := FromEnv()
			require.NoError(t, err)
		})
	}
}

// A redirect would send the hit a second time, and the signature to somebody else.
func TestNoRedirectIsFollowed(t *testing.T) {
	server := dynamotest.New(t)
	setEnv(t, map[string]string{"AWS_ENDPOINT_URL": server.Listen(t)})
	s, err := FromEnv()
	require.NoError(t, err)
	for _, status := range []int{301, 302, 307, 308} {
		server.ClearFaults()
		server.ResetCalls()
		server.SetFault(dynamotest.Fault{Times: 1, Do: dynamotest.Alter(func(r *dynamotest.Reply) {
			r.Status, r.Body = status, nil
			r.Header.Set("Location", "/elsewhere")
		})})
		_, err := s.Take(t.Context(), hit("k", 5, time.Minute))
		require.ErrorIs(t, err, stores.ErrUnavailable)
		require.False(t, asFault(t, err).Definite)
		require.Equal(t, 1, server.Calls(""))
	}
}

func TestTransportFitsFreezeAndThaw(t *testing.T) {
	transport := httpClient().Transport.(*http.Transport)
	require.Equal(t, 5*time.Second, transport.IdleConnTimeout)
	require.GreaterOrEqual(t, transport.MaxIdleConnsPerHost, 64)
	require.True(t, transport.Protocols.HTTP1())
	require.False(t, transport.Protocols.HTTP2())
	require.Zero(t, transport.MaxConnsPerHost)
}
