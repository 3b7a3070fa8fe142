package main

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/handler/form"
)

// patience is when a test stops waiting for what has to happen.
const patience = 30 * time.Second

// buildFlags are those of the program under test.
var buildFlags = []string{"build"}

// built is the directory of the program, shared by the tests of one run.
var built string

// build makes the program once.
var build = sync.OnceValues(func() (string, error) {
	path := filepath.Join(built, "contactform")
	out, err := exec.Command("go", append(buildFlags, "-o", path, ".")...).CombinedOutput()
	if err != nil {
		err = &buildError{err, out}
	}
	return path, err
})

type buildError struct {
	error
	out []byte
}

func (e *buildError) Error() string { return e.error.Error() + "\n" + string(e.out) }

func TestMain(m *testing.M) {
	os.Exit(func() int {
		var err error
		if built, err = os.MkdirTemp("", "contactform"); err != nil {
			panic(err)
		}
		defer func() { _ = os.RemoveAll(built) }()
		return m.Run()
	}())
}

// program is one running instance.
type program struct {
	url    string // without a path
	port   string
	cmd    *exec.Cmd
	log    *logged
	exited chan struct{}
}

// formSecretOfTests signs the forms of all programs under test, and those that the tests
// make themselves, as if they had loaded the page.
const formSecretOfTests = "the same in all instances of a test"

// command is the program with an environment that holds only env, a free port, and what
// lets a form be sent as soon as it was loaded.
func command(t *testing.T, env ...string) (*exec.Cmd, *logged) {
	t.Helper()
	path, err := build()
	require.NoError(t, err)
	cmd := exec.Command(path)
	cmd.Env = append([]string{"PORT=0", "SALLYPORT_MIN_FILL=0", "SALLYPORT_FORM_SECRET=" + formSecretOfTests}, env...)
	cmd.Dir = t.TempDir()
	log := &logged{address: make(chan string, 1)}
	cmd.Stderr = log
	return cmd, log
}

// start runs an instance until the test ends.
func start(t *testing.T, env ...string) *program {
	t.Helper()
	cmd, log := command(t, env...)
	require.NoError(t, cmd.Start())
	p := &program{cmd: cmd, log: log, exited: make(chan struct{})}
	go func() {
		defer close(p.exited)
		_ = cmd.Wait() // what came of it is in cmd.ProcessState
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		<-p.exited
		if t.Failed() {
			t.Logf("log of the program:\n%s", log)
		}
		require.NotContains(t, log.String(), "DATA RACE")
		require.NotContains(t, log.String(), "panic")
	})
	select {
	case address := <-log.address:
		_, port, err := net.SplitHostPort(address)
		require.NoError(t, err)
		p.port, p.url = port, "http://127.0.0.1:"+port
	case <-p.exited:
		t.Fatalf("the program ended:\n%s", log)
	case <-time.After(patience):
		t.Fatalf("the program does not listen:\n%s", log)
	}
	return p
}

// logged is what a program logs. The address of its listener goes to address.
type logged struct {
	mu      sync.Mutex
	text    bytes.Buffer
	found   bool
	address chan string
}

var listening = regexp.MustCompile(`contact form: listening.*address"?[=:]"?([^ ",]+).*\n`)

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

// visitor is a client with an address of its own: all of 127.0.0.0/8 is loopback.
// Each of its requests opens a connection, and so comes from another port.
type visitor struct{ http.Client }

func newVisitor(address string) *visitor {
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
	return &visitor{http.Client{
		Transport:     &http.Transport{DialContext: dialer.DialContext, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Timeout:       patience,
	}}
}

// answer is a response with its whole body.
type answer struct {
	*http.Response
	body string
}

// do sends a request. Each header is "Name: value".
func (v *visitor) do(t testing.TB, method, url, body string, header ...string) answer {
	t.Helper()
	a, err := v.try(method, url, body, header...)
	require.NoError(t, err)
	return a
}

// try is do for other goroutines than the test's.
func (v *visitor) try(method, url, body string, header ...string) (answer, error) {
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	for _, line := range header {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Add(name, value)
	}
	resp, err := v.Do(r)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	read, err := io.ReadAll(resp.Body)
	return answer{resp, string(read)}, err
}

const formType = "Content-Type: application/x-www-form-urlencoded"

// sent is the status of a message that came.
const sent = http.StatusSeeOther

// hidden is the part of the form that a browser sends along: a fresh token, and the
// honeypot as it was.
func hidden() string {
	f, err := form.New(form.Config{ID: "contact", Secret: []byte(formSecretOfTests)})
	if err != nil {
		panic(err)
	}
	values := url.Values{}
	for _, m := range regexp.MustCompile(`name="([^"]+)" value="([^"]*)"`).FindAllStringSubmatch(f.Fields(), -1) {
		values.Set(m[1], m[2])
	}
	return values.Encode()
}

// fields is a body with these fields and nothing else.
func fields(name, email, message string) string {
	return url.Values{"name": {name}, "email": {email}, "message": {message}}.Encode()
}

// goodFields are what the form accepts, and goodForm is a body with them. All of its
// bodies are of one length.
var goodFields = fields("Ada", "ada@example.com", "Hello")

func goodForm() string { return goodFields + "&" + hidden() }

// post sends the form.
func (v *visitor) post(t testing.TB, p *program, header ...string) answer {
	t.Helper()
	return v.do(t, http.MethodPost, p.url+"/contact", goodForm(), append(header, formType)...)
}

// flood posts n times to each of the programs, many at a time, and returns how often
// each status came.
func (v *visitor) flood(t *testing.T, n int, programs ...*program) map[int]int {
	t.Helper()
	var group sync.WaitGroup
	var mu sync.Mutex
	statuses := make(map[int]int)
	var errs []error
	places := make(chan struct{}, 16)
	for range n {
		for _, p := range programs {
			places <- struct{}{}
			group.Go(func() {
				defer func() { <-places }()
				a, err := v.try(http.MethodPost, p.url+"/contact", goodForm(), formType)
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					errs = append(errs, err)
					return
				}
				statuses[a.StatusCode]++
			})
		}
	}
	group.Wait()
	require.Empty(t, errs)
	return statuses
}
