package fastrsa

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"flag"
	"math"
	"math/big"
	"runtime"
	"slices"
	"sync"
	"testing"
	"unsafe"
)

var rounds = flag.Int("rounds", 300, "random numbers that public operations are compared with math/big for")

// exponents that there are in keys, and the extremes.
var exponents = []int{3, 65537, 1<<31 - 1, 5, 1<<30 + 1, 257}

// publicModuli are of 2048 bits and odd, and more is not asked of them: a key's, the largest and the smallest ones, some whose digits are extremes, and a square.
func publicModuli(tb testing.TB) []*big.Int {
	private, _ := rsa.GenerateKey(rand.Reader, 2048)
	one := big.NewInt(1)
	power := func(bits uint) *big.Int { return new(big.Int).Lsh(one, bits) }
	digits := func(digit int64) *big.Int {
		v := power(2047)
		for i := range uint(39) {
			v.Or(v, new(big.Int).Lsh(big.NewInt(digit), digitBits*i))
		}
		return v
	}
	root := new(big.Int).Sub(power(1024), big.NewInt(105))
	moduli := []*big.Int{
		private.N, new(big.Int).Sub(power(2048), one), new(big.Int).Sub(power(2048), big.NewInt(mask)), new(big.Int).Add(power(2047), one),
		digits(mask), digits(1<<51 | 1), digits(1<<51 - 1), digits(1), new(big.Int).Mul(root, root),
	}
	for _, n := range moduli {
		if n.BitLen() != 2048 || n.Bit(0) == 0 {
			tb.Fatalf("%x is no modulus", n)
		}
	}
	return moduli
}

func newTestPublic(tb testing.TB, n *big.Int, e int) *Public {
	tb.Helper()
	if !slices.Contains(engines, fma) {
		tb.Skip("this processor has none of the instructions")
	}
	p := NewPublic(&rsa.PublicKey{N: n, E: e})
	if p == nil {
		tb.Fatalf("a good key was refused: %x, %d", n, e)
	}
	return p
}

// comparePower holds Power against math/big. m has no more than 2048 bits.
func comparePower(tb testing.TB, p *Public, n *big.Int, e int, m *big.Int) {
	tb.Helper()
	got, err := p.Power(m.FillBytes(make([]byte, 256)))
	if m.Cmp(n) >= 0 {
		if !errors.Is(err, ErrRange) || got != nil {
			tb.Fatalf("a number beyond the modulus: %x, %v", got, err)
		}
		return
	}
	if want := new(big.Int).Exp(m, big.NewInt(int64(e)), n).FillBytes(make([]byte, 256)); err != nil || !bytes.Equal(got, want) {
		tb.Fatalf("%x to the power of %d modulo %x is %x, %v; want %x", m, e, n, got, err, want)
	}
}

func TestPowerIsMathBigs(t *testing.T) {
	one, two := big.NewInt(1), big.NewInt(2)
	all := new(big.Int).Sub(new(big.Int).Lsh(one, 2048), one)
	for _, n := range publicModuli(t) {
		for _, e := range exponents {
			p := newTestPublic(t, n, e)
			half := new(big.Int).Rsh(n, 1)
			root := new(big.Int).Sqrt(n)
			for _, m := range []*big.Int{
				new(big.Int), one, two, half, new(big.Int).Add(half, one), new(big.Int).Sub(n, two), new(big.Int).Sub(n, one), n, new(big.Int).Or(n, two), all,
				root, new(big.Int).Mul(root, two), // powers of which are nought where the modulus is a square, though they are none
				new(big.Int).Lsh(one, 2046), new(big.Int).Sub(new(big.Int).Lsh(one, 2047), one), new(big.Int).Lsh(one, 1040),
				new(big.Int).ModInverse(two, n), new(big.Int).Mod(new(big.Int).Lsh(one, 2080), n), // R
			} {
				comparePower(t, p, n, e, m)
			}
		}
	}
}

// TestPowerOfRandom numbers, half of which have digits that are extremes (-rounds). Half of the moduli are random as well.
func TestPowerOfRandom(t *testing.T) {
	moduli := publicModuli(t)
	random := make([]byte, 256)
	for i := range *rounds {
		n, e := moduli[i/2%len(moduli)], exponents[i/7%2]
		if i%50 == 49 {
			e = exponents[i/50%len(exponents)]
		}
		if i%2 == 1 {
			_, _ = rand.Read(random)
			random[0], random[255] = random[0]|0x80, random[255]|1
			n = new(big.Int).SetBytes(random)
		}
		m, _ := rand.Int(rand.Reader, n)
		if i%4 >= 2 {
			for j := range uint(39) {
				if digit := []int64{-1, 0, mask, 1 << 51, 1<<51 - 1, -1}[(int(random[j])+i)%6]; digit >= 0 {
					for bit := range uint(digitBits) {
						m.SetBit(m, int(j*digitBits+bit), uint(digit>>bit&1))
					}
				}
			}
			m.Mod(m, n)
		}
		comparePower(t, newTestPublic(t, n, e), n, e, m)
	}
}

// TestReduce takes the modulus out where it is, and no more than once; what comes may have a bit more than it.
func TestReduce(t *testing.T) {
	for _, n := range publicModuli(t) {
		some := new(big.Int).Rsh(n, 31)
		for _, x := range []*big.Int{new(big.Int), big.NewInt(1), some, new(big.Int).Sub(n, big.NewInt(1))} {
			for _, more := range []*big.Int{new(big.Int), n} {
				var q quadwords
				for i, word := range new(big.Int).Add(x, more).Bits() {
					q[i] = uint64(word)
				}
				q.reduce(n.Bits())
				got := make([]byte, 8*len(q))
				if q.bytes(got); new(big.Int).SetBytes(got).Cmp(x) != 0 {
					t.Fatalf("%x and %x times the modulus %x leave %x", x, more, n, got)
				}
			}
		}
	}
}

func TestNewPublicRefuses(t *testing.T) {
	good := publicModuli(t)[0]
	newTestPublic(t, good, 65537)
	for what, key := range map[string]*rsa.PublicKey{
		"a bit less":         {N: new(big.Int).Rsh(good, 1), E: 65537},
		"an odd bit less":    {N: new(big.Int).SetBit(new(big.Int).Rsh(good, 1), 0, 1), E: 65537},
		"a bit more":         {N: new(big.Int).SetBit(good, 2048, 1), E: 65537},
		"3072 bits":          {N: new(big.Int).SetBit(good, 3071, 1), E: 65537},
		"nought":             {N: new(big.Int), E: 65537},
		"an even modulus":    {N: new(big.Int).SetBit(good, 0, 0), E: 65537},
		"an exponent of 1":   {N: good, E: 1},
		"an even exponent":   {N: good, E: 65536},
		"a negative one":     {N: good, E: -3},
		"one of 32 bits":     {N: good, E: 1<<31 + 1},
		"no exponent at all": {N: good},
	} {
		if NewPublic(key) != nil {
			t.Errorf("%s: it was taken", what)
		}
	}
}

func TestPowerRefusesLengths(t *testing.T) {
	p := newTestPublic(t, publicModuli(t)[0], 3)
	for _, size := range []int{0, 1, 255, 257, 264, 512} {
		if got, err := p.Power(make([]byte, size)); !errors.Is(err, ErrRange) || got != nil {
			t.Errorf("%d bytes: %x, %v", size, got, err)
		}
	}
}

// TestWrongEngineIsSeen: what looks at the engine before it is used tells when something is wrong.
func TestWrongEngineIsSeen(t *testing.T) {
	n := publicModuli(t)[0]
	m := bytes.Repeat([]byte{0x5a}, 256)
	for what, spoil := range map[string]func(*Public){
		"nothing":    func(*Public) {},
		"R²":         func(p *Public) { p.square[39] ^= 1 },
		"a digit":    func(p *Public) { p.moduli[7] ^= 1 << 30 },
		"-1/modulus": func(p *Public) { p.moduli[40] ^= 1 },
	} {
		p := newTestPublic(t, n, 65537)
		spoil(p)
		if p.right(m) != (what == "nothing") {
			t.Errorf("%s is another: that is not seen", what)
		}
	}
	p := newTestPublic(t, n, 3)
	p.n = big.NewInt(5).Bits()
	if p.right(m) {
		t.Error("that it gave no result is not seen")
	}
}

// TestResultsAreCheckedFast where there is a public operation for it, by bigmod elsewhere.
func TestResultsAreCheckedFast(t *testing.T) { each(t, testResultsAreCheckedFast) }

func testResultsAreCheckedFast(t *testing.T, s shape) {
	_, k := generate(t, s, 0)
	if (k.public != nil) != (s.bits == 1024 && slices.Contains(engines, fma)) {
		t.Fatalf("%v has it, or has it not", s)
	}
	c := make([]byte, 2*s.size())
	c[200] = 7
	if k.public == nil {
		return
	}
	want, err := k.Private(c)
	if err != nil {
		t.Fatal(err)
	}
	public := k.public
	k.public = nil
	if got, err := k.Private(c); err != nil || !bytes.Equal(got, want) {
		t.Errorf("bigmod sees it in another way: %v", err)
	}
	k.public = public
	public.moduli[3] ^= 1 << 40
	if got, err := k.Private(c); !errors.Is(err, ErrFaulty) || got != nil {
		t.Errorf("a check that went wrong: %x, %v", got, err)
	}
}

// TestNothingOfNumbersIsLeftBehind, in the workspace or on the stack: what is encrypted is a secret.
func TestNothingOfNumbersIsLeftBehind(t *testing.T) {
	p := newTestPublic(t, publicModuli(t)[0], 65537)
	m := bytes.Repeat([]byte{0x5a, 0x3c, 0x77, 0x91, 0x11}, 60)[:256]
	secrets := map[uint64]bool{}
	var wg sync.WaitGroup
	wg.Go(func() { // elsewhere, so that nothing of this is on the stack in question
		var plain [2 * maxLanes]uint64
		longest.split(plain[:maxLanes], m)
		multiplyOne(plain[maxLanes:], plain[:maxLanes], p.square[:], p.moduli[:])
		for _, digit := range plain {
			secrets[digit] = true
			secrets[math.Float64bits(float64(int64(digit)))] = true
		}
		var q, less quadwords
		q.set(m)
		q.minus(&less, p.n)
		for i := range 32 {
			secrets[q[i]], secrets[less[i]] = true, true
		}
		delete(secrets, 0)
	})
	wg.Wait()
	w, out := new(workspace), make([]byte, 256)
	var below [512]uint64 // what was the frames of the assembly and of its callers
	err := p.power(w, out, m)
	for i := range below {
		below[i] = *(*uint64)(unsafe.Add(unsafe.Pointer(&below), -8*(i+1)))
	}
	if err != nil {
		t.Fatal(err)
	}
	for i, word := range below {
		if secrets[word] {
			t.Errorf("%#x, %d words below, is of the number", word, i)
		}
	}
	if *w != (workspace{}) {
		t.Error("the workspace is left as it was")
	}
}

func TestPowerAllocates(t *testing.T) {
	p := newTestPublic(t, publicModuli(t)[0], 65537)
	m := make([]byte, 256)
	runtime.GC()
	if n := testing.AllocsPerRun(100, func() { _, _ = p.Power(m) }); n > 2 { // the workspace, when a collection took it, or under the race detector
		t.Errorf("%v allocations, want one", n)
	}
}

// TestPowersConcurrently: nobody else has the workspace of an operation.
func TestPowersConcurrently(t *testing.T) {
	n := publicModuli(t)[0]
	p := newTestPublic(t, n, 65537)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 50 {
				comparePower(t, p, n, 65537, big.NewInt(int64(g*1000+i)))
			}
		})
	}
	wg.Wait()
}

func FuzzPower(f *testing.F) {
	for i, n := range publicModuli(f) {
		f.Add(n.Bytes(), exponents[i%len(exponents)], new(big.Int).Sub(n, big.NewInt(int64(i))).Bytes())
	}
	f.Add([]byte{1}, 3, []byte{})
	f.Fuzz(func(t *testing.T, modulus []byte, e int, number []byte) {
		n := new(big.Int).SetBytes(modulus[:min(len(modulus), 256)])
		n.SetBit(n.SetBit(n, 2047, 1), 0, 1)
		e = e&(1<<31-1) | 3
		comparePower(t, newTestPublic(t, n, e), n, e, new(big.Int).SetBytes(number[:min(len(number), 256)]))
	})
}

func BenchmarkPower(b *testing.B) {
	p := newTestPublic(b, publicModuli(b)[0], 65537)
	m := make([]byte, 256)
	m[10] = 3
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.Power(m); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkNewPublic(b *testing.B) {
	key := &rsa.PublicKey{N: publicModuli(b)[0], E: 65537}
	b.ReportAllocs()
	for b.Loop() {
		if NewPublic(key) == nil {
			b.Skip("this processor has none of the instructions")
		}
	}
}
