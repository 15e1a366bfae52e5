package edge

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"saltclusterd/sidecar/zmtp"
)

// TestRotate wants every subscriber to get every publication once, those
// before its nudge under the old generation, those after under the new one.
func TestRotate(t *testing.T) {
	for name, topic := range map[string]string{"unfiltered": "", "filtered": broadcast} {
		t.Run(name, func(t *testing.T) {
			e := openPub(t, PubConfig{Shards: 2})
			var subs []*zmtp.Client
			for range 30 {
				subs = append(subs, subscribe(t, e, topic))
			}
			var rotated sync.WaitGroup
			rotated.Add(1)
			const n, before = 600, 100
			go func() {
				defer rotated.Done()
				for i := range n {
					if i == before {
						e.Rotate(100*time.Millisecond, []byte("nudge"))
					}
					if i > before && i%20 == 0 {
						time.Sleep(5 * time.Millisecond) // spread over the window
					}
					p := Publication{Body: []byte(fmt.Sprintf("old %d", i))}
					if i >= before {
						p = Publication{Body: []byte(fmt.Sprintf("new %d", i)), Prev: []byte(fmt.Sprintf("old %d", i))}
					}
					e.Publish(p)
				}
			}()
			var wg sync.WaitGroup
			moves := make([]int, len(subs))
			for k, c := range subs {
				wg.Go(func() { moves[k] = followRotation(t, c, n) })
			}
			wg.Wait()
			rotated.Wait()
			late := 0
			for _, m := range moves {
				if m < before {
					t.Errorf("moved at %d, before the rotation", m)
				}
				if m > before+5 {
					late++
				}
			}
			if late == 0 {
				t.Error("all moved at once")
			}
			fresh := subscribe(t, e, "")
			e.Publish(Publication{Body: []byte("new"), Prev: []byte("old")})
			next(t, fresh, "new")
			if st := e.Stats(); st.Generation != 1 || st.Cut != 0 {
				t.Errorf("%+v", st)
			}
		})
	}
}

// followRotation reads n publications and one nudge and returns where the
// nudge stood.
func followRotation(t *testing.T, c *zmtp.Client, n int) (moved int) {
	want := "old"
	for i := 0; i < n || moved == 0; {
		p, err := c.ReadMessage()
		if err != nil {
			t.Error(err)
			return
		}
		body := string(p[len(p)-1])
		if body == "nudge" {
			if moved != 0 {
				t.Error("nudged twice")
			}
			moved, want = i, "new"
			continue
		}
		if body != fmt.Sprintf("%s %d", want, i) {
			t.Errorf("got %q, want %s %d", body, want, i)
			return
		}
		i++
	}
	return moved
}

// TestRotateTwice finishes the first rotation when the second begins.
func TestRotateTwice(t *testing.T) {
	e := openPub(t, PubConfig{})
	var subs []*zmtp.Client
	for range 5 {
		subs = append(subs, subscribe(t, e, ""))
	}
	e.Publish(pub("0"))
	e.Rotate(time.Hour, []byte("to 1"))
	fresh := subscribe(t, e, "") // on generation 1 from the start
	e.Rotate(0, []byte("to 2"))
	eventually(t, "all have moved", func() bool { s := e.Stats(); return s.Generation == 2 && s.OnPrevious == 0 })
	e.Publish(pub("2"))
	for _, c := range subs {
		next(t, c, "0")
		next(t, c, "to 1")
		next(t, c, "to 2")
		next(t, c, "2")
	}
	next(t, fresh, "to 2")
	next(t, fresh, "2")
	e.Rotate(time.Hour, nil) // Close must not wait for it
}

// TestRotateNewConnections start on the new generation during the window.
func TestRotateNewConnections(t *testing.T) {
	e := openPub(t, PubConfig{})
	olds := []*zmtp.Client{subscribe(t, e, ""), subscribe(t, e, "")}
	e.Rotate(time.Hour, []byte("nudge"))
	fresh, filtered := subscribe(t, e, ""), subscribe(t, e, broadcast)
	eventually(t, "one has moved", func() bool { return e.Stats().OnPrevious == 1 })
	e.Publish(Publication{Body: []byte("new"), Prev: []byte("old")})
	next(t, fresh, "new")
	next(t, filtered, broadcast, "new")
	stayed := 0
	for _, c := range olds {
		p, err := c.ReadMessage()
		if err != nil {
			t.Fatal(err)
		}
		if string(p[0]) == "old" {
			stayed++
		} else {
			next(t, c, "new")
		}
	}
	if stayed != 1 {
		t.Fatalf("%d of 2 are still on the previous generation", stayed)
	}
}
