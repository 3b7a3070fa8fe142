package sallyport_test

import (
	"bufio"
	"debug/elf"
	"encoding/json"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"
)

// service is what examples/contactform/service.yaml says.
type service struct {
	Kind string
	Spec struct {
		Template struct {
			Metadata struct {
				Annotations map[string]string
			}
			Spec struct {
				ContainerConcurrency int `yaml:"containerConcurrency"`
				TimeoutSeconds       int `yaml:"timeoutSeconds"`
				Containers           []struct {
					Image string
					Ports []struct {
						ContainerPort int `yaml:"containerPort"`
					}
					StartupProbe struct {
						HTTPGet struct{ Path string } `yaml:"httpGet"`
					} `yaml:"startupProbe"`
					Env []struct {
						Name, Value string
						ValueFrom   struct {
							SecretKeyRef struct{ Name, Key string } `yaml:"secretKeyRef"`
						} `yaml:"valueFrom"`
					}
				}
			}
		}
	}
}

func contactService(t *testing.T) (s service) {
	require.NoError(t, yaml.Unmarshal([]byte(paper(t, "examples/contactform/service.yaml")), &s))
	require.Equal(t, "Service", s.Kind)
	require.Len(t, s.Spec.Template.Spec.Containers, 1)
	return s
}

func TestCloudRunService(t *testing.T) {
	s := contactService(t)
	container := s.Spec.Template.Spec.Containers[0]
	read := append(variablesRead(t, "./examples/contactform"), "GOOGLE_CLOUD_PROJECT")
	values := make(map[string]string)
	for _, v := range container.Env {
		require.Contains(t, read, v.Name, "examples/contactform does not read it")
		require.NotContains(t, values, v.Name)
		ref := v.ValueFrom.SecretKeyRef
		if strings.HasSuffix(v.Name, "_SECRET") || strings.HasSuffix(v.Name, "_TOKEN") {
			require.Empty(t, v.Value, "%s is a secret", v.Name)
			require.NotEmpty(t, ref.Name, v.Name)
			require.Regexp(t, `^[1-9][0-9]*$`, ref.Key, "%s: all instances need the same version", v.Name)
		} else {
			require.NotEmpty(t, v.Value, v.Name)
		}
		values[v.Name] = v.Value
	}
	for _, name := range []string{"SALLYPORT_KEY_SECRET", "SALLYPORT_FORM_SECRET", "UPSTASH_REDIS_REST_TOKEN", "UPSTASH_REDIS_REST_URL"} {
		require.Contains(t, values, name)
	}
	require.NotEmpty(t, values["SALLYPORT_INSTANCES"])
	require.Equal(t, s.Spec.Template.Metadata.Annotations["autoscaling.knative.dev/maxScale"], values["SALLYPORT_INSTANCES"],
		"SALLYPORT_INSTANCES says how many instances may run")
	require.Equal(t, 8080, container.Ports[0].ContainerPort)
	require.Greater(t, time.Duration(s.Spec.Template.Spec.TimeoutSeconds)*time.Second, 30*time.Second)
	require.Contains(t, paper(t, "examples/contactform/main.go"), "WriteTimeout:      30 * time.Second")
}

// dockerfile are the instructions of the Dockerfile, by name, in their order.
func dockerfile(t *testing.T) map[string][]string {
	instructions := make(map[string][]string)
	for line := range strings.Lines(paper(t, "Dockerfile")) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			name, arguments, _ := strings.Cut(line, " ")
			instructions[name] = append(instructions[name], arguments)
		}
	}
	return instructions
}

// The image is built by what the Dockerfile says, from what .dockerignore lets through,
// and the program in it starts as service.yaml starts it. No docker is needed: its
// commands are run as they stand.
func TestDockerfile(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the program is for Linux")
	}
	file := dockerfile(t)
	require.Len(t, file["FROM"], 2)
	language := regexp.MustCompile(`(?m)^go (1\.\d+)\.`).FindStringSubmatch(paper(t, "go.mod"))
	require.NotNil(t, language)
	require.Equal(t, "golang:"+language[1]+" AS build", file["FROM"][0], "the language of go.mod")
	require.Equal(t, "gcr.io/distroless/static-debian12:nonroot", file["FROM"][1])
	require.Equal(t, []string{"65532:65532"}, file["USER"])

	context := t.TempDir()
	sent := sendContext(t, context)
	require.Contains(t, sent, "go.mod")
	for _, name := range sent {
		require.False(t, strings.HasSuffix(name, "_test.go") || strings.Contains(name, "node_modules") || strings.HasPrefix(name, "."), name)
	}

	// The commands, with the image's own folder somewhere else.
	out := t.TempDir()
	require.Len(t, file["RUN"], 2)
	require.Equal(t, "go mod download", file["RUN"][0])
	run(t, context, "sh", "-ec", strings.ReplaceAll(file["RUN"][1], " -o /out/", " -o "+out+"/"))
	var entry []string
	require.NoError(t, json.Unmarshal([]byte(file["ENTRYPOINT"][0]), &entry))
	require.Equal(t, "--from=build /out/contactform "+entry[0], file["COPY"][2])
	program := filepath.Join(out, "contactform")
	binary, err := elf.Open(program)
	require.NoError(t, err)
	require.Nil(t, binary.Section(".interp"), "the image has no loader")
	require.NoError(t, binary.Close())

	s := contactService(t)
	cmd := exec.Command(program)
	cmd.Dir = t.TempDir()
	cmd.Env = []string{"K_SERVICE=contactform", "PORT=0"}
	for _, v := range s.Spec.Template.Spec.Containers[0].Env {
		value := v.Value
		if v.ValueFrom.SecretKeyRef.Name != "" {
			value = strings.Repeat("0123456789abcdef", 4)
		}
		cmd.Env = append(cmd.Env, v.Name+"="+value)
	}
	stderr, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	port, log := "", ""
	for lines := bufio.NewScanner(stderr); port == "" && lines.Scan(); {
		log += lines.Text() + "\n"
		var line struct{ Message, Address, Store string }
		if json.Unmarshal(lines.Bytes(), &line) == nil && line.Address != "" {
			require.Equal(t, "upstash", line.Store)
			_, port, err = net.SplitHostPort(line.Address)
			require.NoError(t, err)
		}
	}
	require.NotEmpty(t, port, log)
	resp, err := http.Get("http://127.0.0.1:" + port + s.Spec.Template.Spec.Containers[0].StartupProbe.HTTPGet.Path)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusOK, resp.StatusCode)
}

// sendContext copies what .dockerignore lets through, and returns its names. The file
// says "all but": a "*", exceptions by name or ending, and exceptions from these.
func sendContext(t *testing.T, to string) (sent []string) {
	var only, never []string
	for line := range strings.Lines(paper(t, ".dockerignore")) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "!") {
			only = append(only, strings.TrimPrefix(line, "!"))
		} else if strings.HasPrefix(line, "**/") {
			never = append(never, line)
		} else {
			require.True(t, line == "*" || line == "" || strings.HasPrefix(line, "#"), line)
		}
	}
	matches := func(patterns []string, name string) bool {
		return slices.ContainsFunc(patterns, func(p string) bool {
			deep, ok := strings.CutPrefix(p, "**/")
			if !ok {
				return p == name
			}
			ok, err := filepath.Match(deep, filepath.Base(name))
			require.NoError(t, err)
			return ok
		})
	}
	require.NoError(t, filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if matches(never, name) || name != "." && strings.HasPrefix(entry.Name(), ".") {
				return fs.SkipDir
			}
			return nil
		}
		if !matches(only, name) || matches(never, name) {
			return nil
		}
		sent = append(sent, name)
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		target := filepath.Join(to, name)
		if err := os.MkdirAll(filepath.Dir(target), 0o700); err != nil {
			return err
		}
		return os.WriteFile(target, text, 0o600)
	}))
	return sent
}
