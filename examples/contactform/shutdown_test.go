package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSignalLetsRequestsFinish(t *testing.T) {
	for _, signal := range []os.Signal{syscall.SIGTERM, os.Interrupt} {
		t.Run(signal.String(), func(t *testing.T) {
			p := start(t)
			v := newVisitor("127.0.0.1")
			body := goodForm()
			conn := beginPost(t, v, p, len(body))
			require.NoError(t, p.cmd.Process.Signal(signal))
			require.Eventually(t, func() bool {
				other, err := net.Dial("tcp", "127.0.0.1:"+p.port)
				if err == nil {
					_ = other.Close()
				}
				return err != nil
			}, patience, time.Millisecond, "no new connections are taken")

			_, err := io.WriteString(conn, body)
			require.NoError(t, err)
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			require.NoError(t, err)
			require.Equal(t, sent, resp.StatusCode)
			require.NoError(t, resp.Body.Close())
			p.wait(t)
			require.Equal(t, 0, p.cmd.ProcessState.ExitCode())
		})
	}
}

// A request that does not end must not keep the program from ending.
func TestSecondSignalEndsAtOnce(t *testing.T) {
	p := start(t)
	beginPost(t, newVisitor("127.0.0.1"), p, 100)
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGTERM))
	require.Eventually(t, func() bool {
		return p.cmd.Process.Signal(syscall.SIGTERM) != nil || p.ended()
	}, shutdownTime/2, 10*time.Millisecond)
	p.wait(t)
	require.NotEqual(t, 0, p.cmd.ProcessState.ExitCode())
}

func (p *program) ended() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

func (p *program) wait(t *testing.T) {
	t.Helper()
	select {
	case <-p.exited:
	case <-time.After(patience):
		t.Fatalf("the program does not end:\n%s", p.log)
	}
}

// What can't be meant ends the program with an error that says where, and shows no
// secret.
func TestImpossibleConfiguration(t *testing.T) {
	const secret = "AXsecret0token0example"
	upstash := []string{"UPSTASH_REDIS_REST_URL=https://double.example", "UPSTASH_REDIS_REST_TOKEN=" + secret}
	dynamo := []string{"SALLYPORT_TABLE=limits", "AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY=" + secret}
	tests := []struct {
		name string
		env  []string
		says []string
	}{
		{"no token", upstash[:1], []string{"UPSTASH_REDIS_REST_TOKEN is missing"}},
		{"no URL", upstash[1:], []string{"UPSTASH_REDIS_REST_URL is missing"}},
		{"no KV token", []string{"KV_REST_API_URL=https://double.example"}, []string{"KV_REST_API_TOKEN is missing"}},
		{"no KV URL", []string{"KV_REST_API_TOKEN=" + secret}, []string{"KV_REST_API_URL is missing"}},
		{"half a pair beside a whole one", append([]string{"KV_REST_API_URL=https://double.example", "KV_REST_API_TOKEN=" + secret}, upstash[0]), []string{"UPSTASH_REDIS_REST_TOKEN is missing"}},
		{"plain http", []string{"UPSTASH_REDIS_REST_URL=http://double.example", upstash[1]}, []string{"http://"}},
		{"token in the URL", []string{"UPSTASH_REDIS_REST_URL=https://default:" + secret + "@double.example", upstash[1]}, []string{"password"}},
		{"no region", append(dynamo[:1:1], dynamo[2:]...), []string{"AWS_REGION"}},
		{"no secret key", dynamo[:3], []string{"AWS_SECRET_ACCESS_KEY"}},
		{"two stores", append(upstash[:2:2], dynamo...), []string{"two shared stores", "SALLYPORT_TABLE", "UPSTASH_REDIS_REST_URL"}},
		{"half of one and the other", append(dynamo[:4:4], "KV_REST_API_TOKEN="+secret), []string{"two shared stores", "KV_REST_API_TOKEN"}},
		{"a store without the form's secret", append(upstash[:2:2], "SALLYPORT_FORM_SECRET="), []string{"SALLYPORT_FORM_SECRET is missing"}},
		{"Cloud Run without the form's secret", []string{"K_SERVICE=x", "SALLYPORT_FORM_SECRET="}, []string{"SALLYPORT_FORM_SECRET is missing"}},
		{"short secret of the form", []string{"SALLYPORT_FORM_SECRET=short"}, []string{"Secret", "at least 16"}},
		{"fill time in words", []string{"SALLYPORT_MIN_FILL=two"}, []string{"SALLYPORT_MIN_FILL", "two"}},
		{"negative fill time", []string{"SALLYPORT_MIN_FILL=-1s"}, []string{"SALLYPORT_MIN_FILL"}},
		{"fill time of days", []string{"SALLYPORT_MIN_FILL=48h"}, []string{"SALLYPORT_MIN_FILL"}},
		{"no such captcha", []string{"SALLYPORT_CAPTCHA=guess", "SALLYPORT_CAPTCHA_SITEKEY=x", "SALLYPORT_CAPTCHA_SECRET=" + secret}, []string{"SALLYPORT_CAPTCHA", "hcaptcha"}},
		{"captcha without a site key", []string{"SALLYPORT_CAPTCHA=turnstile", "SALLYPORT_CAPTCHA_SECRET=" + secret}, []string{"SALLYPORT_CAPTCHA_SITEKEY"}},
		{"captcha without a secret", []string{"SALLYPORT_CAPTCHA=turnstile", "SALLYPORT_CAPTCHA_SITEKEY=x"}, []string{"SALLYPORT_CAPTCHA_SECRET"}},
		{"captcha without a kind", []string{"SALLYPORT_CAPTCHA_SITEKEY=x", "SALLYPORT_CAPTCHA_SECRET=" + secret}, []string{"turnstile"}},
		{"site key with markup", []string{"SALLYPORT_CAPTCHA=turnstile", "SALLYPORT_CAPTCHA_SITEKEY=\"><b>", "SALLYPORT_CAPTCHA_SECRET=" + secret}, []string{"SALLYPORT_CAPTCHA_SITEKEY"}},
		{"secret of the captcha in quotes", []string{"SALLYPORT_CAPTCHA=turnstile", "SALLYPORT_CAPTCHA_SITEKEY=x", "SALLYPORT_CAPTCHA_SECRET='" + secret + "'"}, []string{"SALLYPORT_CAPTCHA", "quotes"}},
		{"limit in words", []string{"SALLYPORT_LIMIT=five"}, []string{"SALLYPORT_LIMIT", "five"}},
		{"limit of nothing", []string{"SALLYPORT_LIMIT=0/10m"}, []string{"SALLYPORT_LIMIT"}},
		{"no such strategy", []string{"SALLYPORT_CLIENT_IP=guess"}, []string{"SALLYPORT_CLIENT_IP", "cloudrun"}},
		{"proxies without a network", []string{"SALLYPORT_CLIENT_IP=proxies:"}, []string{"SALLYPORT_CLIENT_IP"}},
		{"instances", append(upstash[:2:2], "SALLYPORT_INSTANCES=many"), []string{"SALLYPORT_INSTANCES"}},
		{"port in words", []string{"PORT=http"}, []string{"PORT", "http", "65535"}},
		{"port too high", []string{"PORT=65536"}, []string{"PORT", "65536"}},
		{"negative port", []string{"PORT=-1"}, []string{"PORT"}},
		{"port with a host", []string{"PORT=0.0.0.0:8080"}, []string{"PORT"}},
		{"on Cloud Run", []string{"K_SERVICE=x", "PORT=no"}, []string{`"severity":"ERROR"`, "PORT"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			cmd, log := command(t, test.env...)
			// Where a test's configuration is taken, the program would serve on.
			done := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
			defer done.Stop()
			err := cmd.Run()
			require.Error(t, err)
			require.Equal(t, 1, cmd.ProcessState.ExitCode(), "%s", log)
			for _, text := range test.says {
				require.Contains(t, log.String(), text)
			}
			require.NotContains(t, log.String(), secret)
			require.NotContains(t, log.String(), "listening")
		})
	}
}

// The one line that says how the program runs holds no secret.
func TestStartIsLogged(t *testing.T) {
	tests := []struct {
		name string
		env  []string
		says []string
	}{
		{"memory", nil, []string{`store="memory, per instance"`, "limit=5/10m", "client_ip=direct"}},
		{"upstash", []string{"UPSTASH_REDIS_REST_URL=https://double.example", "UPSTASH_REDIS_REST_TOKEN=AXsecret", "SALLYPORT_LIMIT=20/1h"}, []string{"store=upstash", "limit=20/1h"}},
		{"KV", []string{"KV_REST_API_URL=https://double.example", "KV_REST_API_TOKEN=AXsecret", "SALLYPORT_CLIENT_IP=hops:2"}, []string{"store=upstash", "client_ip=hops:2"}},
		{"dynamodb", []string{"SALLYPORT_TABLE=limits", "AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY=AXsecret"}, []string{"store=dynamodb"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p := start(t, test.env...)
			for _, text := range append(test.says, "address=127.0.0.1:"+p.port) {
				require.Contains(t, p.log.String(), text)
			}
			for _, text := range []string{"AXsecret", "AKIDEXAMPLE", "double.example"} {
				require.NotContains(t, p.log.String(), text)
			}
			require.Equal(t, 200, newVisitor("127.0.0.1").do(t, "GET", p.url+"/healthz", "").StatusCode, "no store is needed")
		})
	}
}

func TestPortTaken(t *testing.T) {
	p := start(t)
	cmd, log := command(t, "PORT="+p.port)
	require.Error(t, cmd.Run())
	require.Equal(t, 1, cmd.ProcessState.ExitCode())
	require.Contains(t, log.String(), fmt.Sprintf("127.0.0.1:%s", p.port))
}
