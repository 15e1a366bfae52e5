package missedjobs

import (
	"os"
	"testing"
	"time"
)

// TestMain has the tests run on a host that is not in UTC, the stock masters included: job ids are in UTC everywhere.
func TestMain(m *testing.M) {
	east := 5*time.Hour + 30*time.Minute
	time.Local = time.FixedZone("east", int(east/time.Second))
	if err := os.Setenv("TZ", "EAST-05:30"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
