package mastertest

import (
	"os"
	"strconv"
	"testing"

	"saltclusterd/integration/require"
)

// Randoms is how many random loads follow the others of a comparison: SALTCLUSTER_RANDOM if that is set, otherwise n.
func Randoms(t testing.TB, n int64) int { return int(readNumber(t, "SALTCLUSTER_RANDOM", n)) }

// RandomSeed is what they are made from.
func RandomSeed(t testing.TB) int64 { return readNumber(t, "SALTCLUSTER_RANDOM_SEED", 1) }

func readNumber(t testing.TB, name string, n int64) int64 {
	text := os.Getenv(name)
	if text == "" {
		return n
	}
	n, err := strconv.ParseInt(text, 10, 64)
	require.NoError(t, err)
	return n
}
