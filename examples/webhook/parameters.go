package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	signer "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// parameterStore asks AWS Systems Manager by one call of its API
// (https://docs.aws.amazon.com/systems-manager/latest/APIReference/API_GetParameters.html).
// Its SDK client and AWS's config package would add a few megabytes for that; the signer
// is linked for DynamoDB anyway.
type parameterStore struct {
	endpoint    string
	region      string
	credentials aws.Credentials
	client      *http.Client
}

// longestReply is in bytes: four parameters of at most 8 KB each, however escaped.
const longestReply = 256 << 10

// parameterStoreFromEnv takes what Lambda puts into the environment.
// AWS_ENDPOINT_URL_SSM leads to another endpoint: by https, or by http on loopback.
func parameterStoreFromEnv() (*parameterStore, error) {
	s := &parameterStore{region: os.Getenv("AWS_REGION"), credentials: aws.Credentials{
		AccessKeyID: os.Getenv("AWS_ACCESS_KEY_ID"), SecretAccessKey: os.Getenv("AWS_SECRET_ACCESS_KEY"), SessionToken: os.Getenv("AWS_SESSION_TOKEN"),
	}}
	if s.region == "" || !s.credentials.HasKeys() {
		return nil, errors.New("AWS_REGION, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are needed to read it")
	}
	if s.endpoint = os.Getenv("AWS_ENDPOINT_URL_SSM"); s.endpoint == "" {
		domain := "amazonaws.com"
		if strings.HasPrefix(s.region, "cn-") {
			domain += ".cn"
		}
		s.endpoint = "https://ssm." + s.region + "." + domain
	}
	u, err := url.Parse(s.endpoint)
	if err != nil || u.User != nil || u.Scheme != "https" && (u.Scheme != "http" || !net.ParseIP(u.Hostname()).IsLoopback()) {
		return nil, errors.New("AWS_ENDPOINT_URL_SSM: want https, or http to a loopback address: secrets travel there")
	}
	s.client = &http.Client{
		Timeout: 2 * time.Second, // three of them fit into the 10 s that Lambda gives to a start
		// The connection is used once, and would be dead after the first freeze.
		Transport:     &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return s, nil
}

// parameter is one in the answer.
type parameter struct{ Name, Type, Value string }

// read returns the values of those names that stand under the path. If it fails, again
// tells whether another attempt may help.
func (s *parameterStore) read(path string, names []string) (values map[string]string, again bool, err error) {
	var asked []string
	for _, name := range names {
		asked = append(asked, path+"/"+name)
	}
	body, err := json.Marshal(map[string]any{"Names": asked, "WithDecryption": true})
	if err != nil {
		return nil, false, err
	}
	status, reply, err := s.call("AmazonSSM.GetParameters", body)
	if err != nil {
		return nil, true, err
	}
	if status != http.StatusOK {
		kind := failure(reply)
		return nil, status >= 500 || kind == "ThrottlingException", fmt.Errorf("GetParameters: status %d, %s", status, kind)
	}
	// What there is not, the answer lists apart.
	var found struct{ Parameters []parameter }
	if json.Unmarshal(reply, &found) != nil {
		return nil, true, errors.New("GetParameters: the answer is no JSON of its kind")
	}
	values = make(map[string]string)
	for _, p := range found.Parameters {
		if !slices.Contains(asked, p.Name) {
			return nil, false, errors.New("GetParameters: the answer is about something else")
		}
		if p.Type != "SecureString" {
			return nil, false, fmt.Errorf("%s is no SecureString", p.Name)
		}
		values[strings.TrimPrefix(p.Name, path+"/")] = p.Value
	}
	return values, false, nil
}

func (s *parameterStore) call(target string, body []byte) (status int, reply []byte, err error) {
	ctx := context.Background() // the client has a deadline
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.endpoint, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	r.Header.Set("Content-Type", "application/x-amz-json-1.1")
	r.Header.Set("X-Amz-Target", target)
	hash := sha256.Sum256(body)
	if err := signer.NewSigner().SignHTTP(ctx, s.credentials, r, hex.EncodeToString(hash[:]), "ssm", s.region, time.Now()); err != nil {
		return 0, nil, err
	}
	resp, err := s.client.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	reply, err = io.ReadAll(io.LimitReader(resp.Body, longestReply))
	return resp.StatusCode, reply, err
}

// failure is the name of an error that AWS answered with, and nothing else of it: the
// text may repeat what was sent.
func failure(reply []byte) string {
	var e struct {
		Type string `json:"__type"`
	}
	if json.Unmarshal(reply, &e) != nil {
		return "unknown"
	}
	name := e.Type[strings.LastIndexByte(e.Type, '#')+1:]
	if name == "" || len(name) > 64 || strings.ContainsFunc(name, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z')
	}) {
		return "unknown"
	}
	return name
}
