//go:build integration

package scenario

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"testing"
	"time"

	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
)

// cherryPyPort is the port of the nodes' salt-apis, which HAProxy carries.
const cherryPyPort = 8000

// apiSite is a cluster with a salt-api beside each master, behind the HAProxy that saltclusterctl haproxy --api makes.
type apiSite struct {
	*lab.Cluster
	apis   map[string]*lab.Process // by node
	client *http.Client            // each request has a connection of its own
}

// apiMasters lets one user do everything, by a password.
var apiMasters = lab.Settings{
	"timeout": 10, "gather_job_timeout": 15,
	"external_auth": map[string]any{"sharedsecret": map[string]any{"fred": []any{".*", "@runner", "@wheel", "@jobs"}}},
	"sharedsecret":  "secret", "netapi_enable_clients": []string{"local", "local_async", "runner", "wheel"},
	"rest_cherrypy": map[string]any{"port": cherryPyPort, "host": "0.0.0.0", "disable_ssl": true},
	"rest_tornado":  map[string]any{"port": tornadoPort, "address": "0.0.0.0", "disable_ssl": true},
}

// apiNodes are drained in seconds, and show what clients of /events watch for.
var apiNodes = lab.Settings{
	"drain_announce": "2s", "drain_time": "2s",
	"cluster_event_policy": map[string]string{"lab/count/all/*": "all"}, "cluster_event_mirror": []string{"salt/job/*"},
}

// TestSaltAPI: what clients of salt-api do, as SaltGUI and pepper do it, where any of three nodes answers.
// "make test-api".
func TestSaltAPI(t *testing.T) {
	if os.Getenv("SALTCLUSTER_LONG") == "" {
		t.Skip("make test-api; TestClusterData has what tokens may do")
	}
	ctx := t.Context()
	l := labtest.New(t, lab.Options{})
	labtest.NeedNetwork(t, l)    // the same ports on each host
	lb, err := l.Host(ctx, "lb") // first: the addresses are part of the nodes' configuration
	labtest.Must(t, err)
	ops, err := l.Host(ctx, opsHost)
	labtest.Must(t, err)
	c, err := l.NewCluster(ctx, lab.ClusterSpec{
		Masters: lab.Versions, Minions: lab.Versions, DaemonSettings: apiDaemons(lb, ops), MasterSettings: apiMasters,
		LB: lab.LBOptions{API: cherryPyPort, SendProxy: "send-proxy-v2", SendReq: "send-proxy-v2"},
	})
	labtest.Must(t, err)
	for _, n := range c.Nodes {
		labtest.Must(t, countReactionsOn(n, apiMasters, "salt/netapi/hook/lab/count/*"))
	}
	labtest.Must(t, c.Up(ctx))
	s := &apiSite{Cluster: c, apis: map[string]*lab.Process{}, client: &http.Client{Timeout: time.Minute, Transport: &http.Transport{
		DisableKeepAlives: true, DialContext: c.Minions[0].Host().Dial,
	}}}
	for _, n := range c.Nodes {
		p, err := n.Master.NewAPI(cherryPyPort, tornadoPort)
		labtest.Must(t, err)
		labtest.Must(t, p.Start(ctx))
		s.apis[n.Name] = p
	}
	for _, p := range s.apis {
		labtest.Must(t, p.WaitReady(ctx, 2*time.Minute))
	}
	for _, n := range c.Nodes {
		s.seen(t, n, "UP")
	}
	for _, step := range []struct {
		name string
		test func(*testing.T, *apiSite)
	}{
		{"a session", testAPISession},
		{"tokens", testAPITokens},
		{"a job and its result", testAPIJob},
		{"SaltGUI", testAPISaltGUI},
		{"pepper", testAPIPepper},
		{"events", testAPIEvents},
		{"hooks", testAPIHook},
		{"a client on another host", testAPIClear},
		{"rest_tornado", testAPITornado},
		{"a drained node", testAPIDrain},
	} {
		if !t.Run(step.name, func(t *testing.T) { step.test(t, s) }) {
			t.Fatal(l.Tails(60))
		}
	}
}

// vip and at are where clients call: the load balancer, one node.
func (s *apiSite) vip() string           { return apiURL(s.LB.Host().Addr, cherryPyPort) }
func (s *apiSite) at(n *lab.Node) string { return apiURL(n.Addr, cherryPyPort) }

func apiURL(addr string, port int) string {
	return "http://" + net.JoinHostPort(addr, fmt.Sprint(port))
}

// ask sends a request, of JSON, and returns the status and what "return" of the answer has.
func (s *apiSite) ask(ctx context.Context, method, url, token string, body any) (status int, ret []any, err error) {
	raw, err := json.Marshal(body)
	if err != nil {
		return 0, nil, err
	}
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(raw))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("Content-Type", "application/json")
	if token != "" {
		req.Header.Set("X-Auth-Token", token)
	}
	res, err := s.client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		return res.StatusCode, nil, err
	}
	var answer struct{ Return json.RawMessage }
	if err := json.Unmarshal(text, &answer); err != nil {
		return res.StatusCode, nil, nil // of another form
	}
	_ = json.Unmarshal(answer.Return, &ret)
	return res.StatusCode, ret, nil
}

// must asks what has to be answered.
func (s *apiSite) must(t *testing.T, method, url, token string, body any) []any {
	t.Helper()
	status, ret, err := s.ask(t.Context(), method, url, token, body)
	if err != nil || status != http.StatusOK {
		t.Fatalf("%s %s: %d, %v", method, url, status, err)
	}
	return ret
}

// credentials are the user's.
func credentials(more map[string]any) map[string]any {
	out := map[string]any{"username": "fred", "password": "secret", "sharedsecret": "secret", "eauth": "sharedsecret"}
	for k, v := range more {
		out[k] = v
	}
	return out
}

// login is what SaltGUI and pepper do first.
func (s *apiSite) login(t *testing.T, at string) string {
	t.Helper()
	ret := s.must(t, http.MethodPost, at+"/login", "", credentials(nil))
	if len(ret) == 1 {
		if of, ok := ret[0].(map[string]any); ok && of["token"] != nil {
			return fmt.Sprint(of["token"])
		}
	}
	t.Fatalf("login answers %v", ret)
	return ""
}

// ping is what a client asks of all minions.
func ping(more map[string]any) []any {
	low := map[string]any{"client": "local", "tgt": "*", "fun": "test.ping"}
	for k, v := range more {
		low[k] = v
	}
	return []any{low}
}

// pinged says that all minions answered.
func (s *apiSite) pinged(ret []any) error {
	if len(ret) != 1 {
		return fmt.Errorf("the answer is %v", ret)
	}
	got, _ := ret[0].(map[string]any)
	return lab.AnsweredBy(got, s.IDs()...)
}

// testAPISession: SaltGUI and pepper send what they want to / with the token of /login. A client stays on one node.
func testAPISession(t *testing.T, s *apiSite) {
	token := s.login(t, s.vip())
	for range 5 {
		labtest.Must(t, s.pinged(s.must(t, http.MethodPost, s.vip()+"/", token, ping(nil))))
	}
	for _, path := range []string{"/minions", "/jobs", "/keys", "/stats"} { // pages of SaltGUI
		s.must(t, http.MethodGet, s.vip()+path, token, nil)
	}
	s.home(t, token)
}

// testAPITokens: /run, with an eauth token of any node, or with user and password as pepper --run-uri does, on each.
func testAPITokens(t *testing.T, s *apiSite) {
	var tokens []string
	for _, n := range s.Nodes {
		status, raw, err := s.token(t.Context(), s.at(n))
		labtest.Must(t, err)
		if status != http.StatusOK {
			t.Fatalf("%s: /token answers %d", n.Name, status)
		}
		tokens = append(tokens, raw)
	}
	for _, n := range s.Nodes {
		for i, token := range tokens {
			labtest.Must(t, lab.Eventually(t.Context(), time.Minute, "the token of "+s.Nodes[i].Name+" on "+n.Name,
				func(ctx context.Context) error {
					status, ret, err := s.ask(ctx, http.MethodPost, s.at(n)+"/run", "", ping(map[string]any{"token": token}))
					if err != nil || status != http.StatusOK {
						return errors.Join(err, fmt.Errorf("status %d", status))
					}
					return s.pinged(ret)
				}))
		}
		labtest.Must(t, s.pinged(s.must(t, http.MethodPost, s.at(n)+"/run", "", ping(credentials(nil)))))
	}
}

// token asks for an eauth token, whose answer is a bare list.
func (s *apiSite) token(ctx context.Context, at string) (status int, token string, err error) {
	raw, err := json.Marshal(credentials(nil))
	if err != nil {
		return 0, "", err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, at+"/token", bytes.NewReader(raw))
	if err != nil {
		return 0, "", err
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("Content-Type", "application/json")
	res, err := s.client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	var list []struct{ Token string }
	if res.StatusCode == http.StatusOK {
		err = json.NewDecoder(res.Body).Decode(&list)
	}
	if err == nil && len(list) == 1 {
		token = list[0].Token
	}
	return res.StatusCode, token, err
}

// testAPIJob: what one salt-api has started, each of them finds.
func testAPIJob(t *testing.T, s *apiSite) {
	start := ping(map[string]any{"client": "local_async"})
	ret := s.must(t, http.MethodPost, s.vip()+"/", s.login(t, s.vip()), start)
	if len(ret) != 1 {
		t.Fatalf("local_async answers %v", ret)
	}
	job, _ := ret[0].(map[string]any)
	jid := fmt.Sprint(job["jid"])
	for _, n := range s.Nodes {
		at := s.at(n)
		token := s.login(t, at)
		labtest.Must(t, lab.Eventually(t.Context(), time.Minute, jid+" by the salt-api of "+n.Name,
			func(ctx context.Context) error {
				status, ret, err := s.ask(ctx, http.MethodGet, at+"/jobs/"+jid, token, nil)
				if err != nil || status != http.StatusOK {
					return errors.Join(err, fmt.Errorf("status %d", status))
				}
				return s.pinged(ret)
			}))
	}
}
