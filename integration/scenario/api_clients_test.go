//go:build integration

package scenario

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"saltclusterd/integration/check"
	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
)

// browser sends what SaltGUI sends (saltgui/static/scripts/Api.js of August 2026): each request has the token of /login
// in X-Auth-Token, and the browser adds the cookie that /login has set.
type browser struct {
	*apiSite
	*http.Client
	token string // of the session storage
}

func (s *apiSite) newBrowser(t *testing.T) *browser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	labtest.Must(t, err)
	b := &browser{s, &http.Client{Jar: jar, Transport: s.client.Transport}, ""}
	// API.login: one object, and an empty X-Auth-Token.
	var login []struct {
		Token string
		Perms []any
	}
	labtest.Must(t, b.send(t.Context(), http.MethodPost, "/login",
		map[string]any{"eauth": "sharedsecret", "password": "secret", "username": "fred"}, &login))
	if len(login) != 1 || login[0].Token == "" || len(login[0].Perms) == 0 {
		t.Fatalf("/login answers %v", login)
	}
	b.token = login[0].Token
	return b
}

// send is API.apiRequest: parameters are one object, not a list of them. It reads "return" of the answer into ret.
func (b *browser) send(ctx context.Context, method, page string, params, ret any) error {
	var body io.Reader
	if method == http.MethodPost {
		raw, err := json.Marshal(params)
		if err != nil {
			return err
		}
		body = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(ctx, method, b.vip()+page, body)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("Cache-Control", "no-cache")
	req.Header.Set("X-Auth-Token", b.token)
	req.Header.Set("Content-Type", "text/plain;charset=UTF-8") // what fetch says of a text
	res, err := b.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s %s %v: %s", method, page, params, res.Status)
	}
	answer := struct{ Return any }{ret}
	return json.NewDecoder(res.Body).Decode(&answer)
}

// run sends an object to / and returns the one answer to it.
func (b *browser) run(t *testing.T, params map[string]any) map[string]any {
	t.Helper()
	var ret []map[string]any
	labtest.Must(t, b.send(t.Context(), http.MethodPost, "/", params, &ret))
	if len(ret) != 1 {
		t.Fatalf("%v: %v", params, ret)
	}
	return ret[0]
}

// events is API.getEvents: an EventSource of the browser, which has the cookie and no header of SaltGUI's.
func (b *browser) events(t *testing.T) *eventStream {
	t.Helper()
	return b.stream(t, b.vip()+"/events", b.Client, "")
}

// testAPISaltGUI: a day with SaltGUI, whose browser stays on one node.
func testAPISaltGUI(t *testing.T, s *apiSite) {
	ctx, b := t.Context(), s.newBrowser(t)
	stream := b.events(t)
	stream.await(t, "/ret/"+s.Minions[0].ID, func(ctx context.Context) error {
		return b.send(ctx, http.MethodPost, "/", map[string]any{"client": "local", "fun": "test.ping", "tgt": "*",
			"tgt_type": "glob", "full_return": true}, nil)
	})
	// The pages Minions, Keys and Jobs, and Options.
	for name, got := range map[string]map[string]any{
		"grains": b.run(t, map[string]any{"client": "local", "fun": "grains.items", "tgt_type": "glob", "tgt": "*"}),
		"cached": b.run(t, map[string]any{"client": "runner", "fun": "cache.grains", "tgt": "*"}),
	} {
		check.NoError(t, lab.AnsweredBy(got, s.IDs()...), name)
	}
	s.hasKeys(t, b.run(t, map[string]any{"client": "wheel", "fun": "key.list_all"}))
	for _, fun := range []string{"config.values", "minions.connected"} { // TestPresence has what the latter says
		b.run(t, map[string]any{"client": "wheel", "fun": fun})
	}
	b.run(t, map[string]any{"client": "runner", "fun": "jobs.active"})
	labtest.Must(t, b.send(ctx, http.MethodGet, "/stats", nil, nil))

	// A command with "run type" async, whose returns SaltGUI takes from the stream, and then the page of the job.
	jid := fmt.Sprint(b.run(t, map[string]any{"client": "local_async", "fun": "test.ping", "tgt": "*", "full_return": true,
		"tgt_type": "glob"})["jid"])
	for _, id := range s.IDs() {
		stream.has(t, "the browser", "salt/job/"+jid+"/ret/"+id, 1)
	}
	labtest.Must(t, lab.Eventually(ctx, time.Minute, "the page of the job", func(context.Context) error {
		job := b.run(t, map[string]any{"client": "runner", "fun": "jobs.list_job", "jid": jid})
		got, _ := job["Result"].(map[string]any)
		return lab.AnsweredBy(got, s.IDs()...)
	}))
	if jobs := b.run(t, map[string]any{"client": "runner", "fun": "jobs.list_jobs"}); jobs[jid] == nil {
		t.Errorf("%s is not in the list of %d jobs", jid, len(jobs))
	}
	b.inQuery(t)
	labtest.Must(t, b.send(ctx, http.MethodPost, "/logout", map[string]any{}, new(any)))
	if err := b.send(ctx, http.MethodGet, "/stats", nil, nil); err == nil {
		t.Error("/stats answers after the logout")
	}
}

// inQuery: SaltGUI had the token of EventSource in the query, with which all these Salts refuse /events.
func (b *browser) inQuery(t *testing.T) {
	t.Helper()
	for _, name := range []string{"token", "salt_token"} {
		for _, n := range b.Nodes {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.at(n)+"/events?"+name+"="+b.token, nil)
			labtest.Must(t, err)
			res, err := b.client.Do(req)
			labtest.Must(t, err)
			res.Body.Close()
			if res.StatusCode != http.StatusBadRequest {
				t.Errorf("%s: ?%s= is answered by %s: such a stream can be tested", n.Master.Version, name, res.Status)
			}
		}
	}
}

// testAPIPepper: salt-pepper itself, through the load balancer.
func testAPIPepper(t *testing.T, s *apiSite) {
	program := os.Getenv("SALTCLUSTER_PEPPER")
	if program == "" {
		t.Skip("pepper has to be installed: make test-api")
	}
	cache := filepath.Join(t.TempDir(), "token")
	run := func(url string, args ...string) []map[string]any {
		t.Helper()
		argv := append([]string{program, "-u", url, "--username", "fred", "--password", "secret", "--eauth", "sharedsecret",
			"--non-interactive", "-c", "/nonexistent", "-x", cache}, args...)
		res, err := s.Minions[0].Host().Exec(t.Context(), []string{"HOME=" + filepath.Dir(cache)}, argv...)
		labtest.Must(t, errors.Join(err, res.Err()))
		var answer struct{ Return []map[string]any }
		if err := json.Unmarshal([]byte(res.Stdout), &answer); err != nil {
			t.Fatalf("pepper %s: %v: %s", strings.Join(args, " "), err, res.Output())
		}
		if len(answer.Return) != 1 {
			t.Fatalf("pepper %s: %s", strings.Join(args, " "), res.Output())
		}
		return answer.Return
	}
	pinged := func(url string, args ...string) {
		t.Helper()
		check.NoError(t, lab.AnsweredBy(run(url, append(args, "*", "test.ping")...)[0], s.IDs()...), url, args)
	}
	pinged(s.vip())
	pinged(s.vip(), "--run-uri") // by an eauth token of /token
	for range 2 {                // the second one by the session that the first one has stored
		pinged(s.vip(), "--make-token")
	}
	for _, n := range s.Nodes {
		pinged(s.at(n), "--run-uri")
		pinged(apiURL(n.Addr, tornadoPort))
	}
	jid := fmt.Sprint(run(s.vip(), "--client=local_async", "*", "test.ping")[0]["jid"])
	for _, n := range s.Nodes {
		labtest.Must(t, lab.Eventually(t.Context(), time.Minute, jid+" on "+n.Name, func(context.Context) error {
			got := run(s.at(n), "--client=runner", "jobs.lookup_jid", "jid="+jid)[0]
			if data, ok := got["data"].(map[string]any); ok { // of full_return
				got = data
			}
			if ret, ok := got["return"].(map[string]any); ok {
				got = ret
			}
			return lab.AnsweredBy(got, s.IDs()...)
		}))
	}
	s.hasKeys(t, run(s.vip(), "--client=wheel", "key.list_all")[0])
}

// hasKeys says that key.list_all has answered with all accepted keys.
func (s *apiSite) hasKeys(t *testing.T, answer map[string]any) {
	t.Helper()
	data, _ := answer["data"].(map[string]any)
	keys, _ := data["return"].(map[string]any)
	if ids, _ := keys["minions"].([]any); len(ids) != len(s.IDs()) {
		t.Errorf("key.list_all: %v", answer)
	}
}
