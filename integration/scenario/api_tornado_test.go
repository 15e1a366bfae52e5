//go:build integration

package scenario

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
)

// tornadoPort is the port of rest_tornado, which a HAProxy of its own carries.
const tornadoPort = 8001

// testAPITornado: rest_tornado's sessions are eauth tokens, so any node takes them.
func testAPITornado(t *testing.T, s *apiSite) {
	ctx := t.Context()
	host, err := s.Lab.Host(ctx, "lb2")
	labtest.Must(t, err)
	var hosts []*lab.Host
	for _, n := range s.Nodes {
		hosts = append(hosts, n.Host)
	}
	lb, err := host.NewHAProxy(lab.LBOptions{API: tornadoPort}, hosts...)
	labtest.Must(t, err)
	labtest.Must(t, lb.Start(ctx))
	labtest.Must(t, lb.WaitReady(ctx, time.Minute))
	vip := apiURL(host.Addr, tornadoPort)

	token := s.login(t, vip)
	ret := s.must(t, http.MethodPost, vip+"/", token, ping(map[string]any{"client": "local_async"}))
	if len(ret) != 1 {
		t.Fatalf("local_async answers %v", ret)
	}
	job, _ := ret[0].(map[string]any)
	jid := fmt.Sprint(job["jid"])
	want := map[string]int{}
	for _, n := range s.Nodes {
		at := apiURL(n.Addr, tornadoPort)
		for what, ask := range map[string]func(context.Context) (int, []any, error){
			"a job by the session": func(ctx context.Context) (int, []any, error) {
				return s.ask(ctx, http.MethodPost, at+"/", token, ping(nil))
			},
			"/run with the token": func(ctx context.Context) (int, []any, error) {
				return s.ask(ctx, http.MethodPost, at+"/run", "", ping(map[string]any{"token": token}))
			},
			"/jobs/JID": func(ctx context.Context) (int, []any, error) {
				status, ret, err := s.ask(ctx, http.MethodGet, at+"/jobs/"+jid, token, nil)
				return status, resultsOf(ret), err
			},
		} {
			labtest.Must(t, lab.Eventually(ctx, time.Minute, what+" on "+n.Name, func(ctx context.Context) error {
				status, ret, err := ask(ctx)
				if err != nil || status != http.StatusOK {
					return errors.Join(err, fmt.Errorf("status %d", status))
				}
				return s.pinged(ret)
			}))
		}
		all := "lab/count/all/tornado-" + n.Name
		s.listen(t, at+"/events", token).await(t, all, s.send(n, s.Minions[0], all))
		hook := "lab/count/tornado-" + n.Name
		s.must(t, http.MethodPost, at+"/hook/"+hook, token, map[string]any{"built": true})
		want["salt/netapi/hook/"+hook] = 1
	}
	awaitCounts(t, s.Cluster, want)
}

// resultsOf are the results in what jobs.list_job says, as other answers have them.
func resultsOf(ret []any) []any {
	got := map[string]any{}
	for _, one := range ret {
		job, _ := one.(map[string]any)
		results, _ := job["Result"].(map[string]any)
		for id, result := range results {
			of, _ := result.(map[string]any)
			got[id] = of["return"]
		}
	}
	return []any{got}
}
