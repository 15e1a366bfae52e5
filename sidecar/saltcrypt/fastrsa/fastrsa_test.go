package fastrsa

import (
	"bytes"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"unsafe"
)

// ours are the shapes of the engines that this processor has.
func ours() []shape {
	return slices.DeleteFunc(slices.Clone(shapes), func(s shape) bool { return !slices.Contains(engines, s.engine) })
}

func (s shape) String() string { return fmt.Sprintf("%d/%v", 2*s.bits, s.engine) }

// each runs a test with every one of them.
func each(t *testing.T, test func(*testing.T, shape)) {
	if len(engines) == 0 {
		t.Skip("this processor has none of the instructions")
	}
	for _, s := range ours() {
		t.Run(s.String(), func(t *testing.T) { test(t, s) })
	}
}

// keys are kept: of 4096 bits they take a second or two.
var keys = map[int][]*rsa.PrivateKey{}

func generate(tb testing.TB, s shape, i int) (*rsa.PrivateKey, *Key) {
	tb.Helper()
	for len(keys[s.bits]) <= i {
		private, err := rsa.GenerateKey(rand.Reader, 2*s.bits)
		if err != nil {
			tb.Fatal(err)
		}
		keys[s.bits] = append(keys[s.bits], private)
	}
	k := newKey(keys[s.bits][i], s.engine)
	if k == nil {
		tb.Fatal("New refused a good key")
	}
	return keys[s.bits][i], k
}

// compare holds Private against math/big.
func compare(tb testing.TB, private *rsa.PrivateKey, k *Key, c *big.Int) {
	tb.Helper()
	got, err := k.Private(c.FillBytes(make([]byte, private.Size())))
	if c.Cmp(private.N) >= 0 {
		if !errors.Is(err, ErrRange) {
			tb.Fatalf("a number beyond the modulus: %v", err)
		}
		return
	}
	if err != nil {
		tb.Fatal(err)
	}
	if want := new(big.Int).Exp(c, private.D, private.N).FillBytes(make([]byte, private.Size())); !bytes.Equal(got, want) {
		tb.Fatalf("%x to the power of d is another number", c)
	}
}

func TestPrivateIsMathBigs(t *testing.T) { each(t, testPrivateIsMathBigs) }

func testPrivateIsMathBigs(t *testing.T, s shape) {
	_, k := generate(t, s, 0)
	for _, size := range []int{0, 1, 2*s.size() - 1, 2*s.size() + 1} {
		if _, err := k.Private(make([]byte, size)); !errors.Is(err, ErrRange) {
			t.Errorf("a number of %d bytes: %v", size, err)
		}
	}
	for i := range max(1, 3-s.bits/1024) { // longer keys take long
		private, k := generate(t, s, i)
		one, two := big.NewInt(1), big.NewInt(2)
		p, q := private.Primes[0], private.Primes[1]
		for _, c := range []*big.Int{
			new(big.Int), one, two, p, q, new(big.Int).Sub(p, one), new(big.Int).Add(q, one),
			new(big.Int).Mul(p, two), new(big.Int).Sub(private.N, one), new(big.Int).Sub(private.N, p), private.N,
			new(big.Int).Lsh(one, uint(2*s.bits-1)), new(big.Int).Sub(new(big.Int).Lsh(one, 1040), one), new(big.Int).Lsh(one, 1040),
		} {
			compare(t, private, k, c)
		}
		for range 40 * 1024 / s.bits {
			c, err := rand.Int(rand.Reader, private.N)
			if err != nil {
				t.Fatal(err)
			}
			compare(t, private, k, c)
		}
	}
}

// TestUnequalPrimes: one as large and one as small as primes of a key may be, in both orders.
func TestUnequalPrimes(t *testing.T) { each(t, testUnequalPrimes) }

func testUnequalPrimes(t *testing.T, s shape) {
	exponent, one, two := big.NewInt(65537), big.NewInt(1), big.NewInt(2)
	offset := map[int][2]int64{1024: {105, 863}, 1536: {3453, 1789}, 2048: {1557, 443}}[s.bits] // the first ones that serve: searching takes seconds
	large := new(big.Int).Lsh(one, uint(s.bits))
	large.Sub(large, big.NewInt(offset[0]))
	small := new(big.Int).Lsh(one, uint(s.bits-1))
	small.Add(small, new(big.Int).Lsh(one, uint(s.bits-24))).Add(small, big.NewInt(offset[1]))
	if !large.ProbablyPrime(1) || !small.ProbablyPrime(1) {
		t.Fatal("these are not primes")
	}
	for _, primes := range [][]*big.Int{{large, small}, {small, large}} {
		phi := new(big.Int).Mul(new(big.Int).Sub(large, one), new(big.Int).Sub(small, one))
		private := &rsa.PrivateKey{
			PublicKey: rsa.PublicKey{N: new(big.Int).Mul(large, small), E: int(exponent.Int64())},
			D:         new(big.Int).ModInverse(exponent, phi), Primes: primes,
		}
		private.Precompute()
		k := newKey(private, s.engine)
		if k == nil {
			t.Fatal("New refused a good key")
		}
		for _, c := range []*big.Int{one, two, large, small, new(big.Int).Sub(private.N, one), new(big.Int).Sub(private.N, large), new(big.Int).Sub(large, one)} {
			compare(t, private, k, c)
		}
		for range 5 {
			c, err := rand.Int(rand.Reader, private.N)
			if err != nil {
				t.Fatal(err)
			}
			compare(t, private, k, c)
		}
	}
}

// TestMultiply has the largest factors that may come, beside random ones, and looks at the size of what comes out.
func TestMultiply(t *testing.T) { each(t, testMultiply) }

func testMultiply(t *testing.T, s shape) {
	private, k := generate(t, s, 0)
	primes, moduli := private.Primes, k.moduli
	lowest, highest := -int64(s.half), int64(mask-s.half)
	if s.engine == fma {
		highest++
	}
	value := func(x []uint64) *big.Int {
		v := new(big.Int)
		for i := s.digits - 1; i >= 0; i-- {
			if d := int64(x[s.lane(i)]); d < lowest || d > highest {
				t.Fatalf("digit %d is none: %#x", i, d)
			} else {
				v.Lsh(v, digitBits).Add(v, big.NewInt(d))
			}
		}
		return v
	}
	set := func(dst []uint64, v *big.Int) {
		v = new(big.Int).Set(v)
		for i := range s.digits {
			dst[s.lane(i)] = new(big.Int).And(v, big.NewInt(mask)).Uint64()
			v.Rsh(v, digitBits)
		}
		s.carry(dst)
	}
	// swell makes digits that are as low as can be as high as can be, with one less in the next, where the engine knows such digits: not the lowest one.
	swell := func(x []uint64) {
		for i := 1; i < s.digits-1; i++ {
			if digit, next := &x[s.lane(i)], &x[s.lane(i+1)]; s.engine == fma && int64(*digit) == lowest && int64(*next) > lowest {
				*digit, *next = uint64(highest), *next-1
			}
		}
	}
	R := new(big.Int).Lsh(big.NewInt(1), uint(s.digits*digitBits))
	// check holds a product against that of math/big, which is the same number and not only modulo the prime.
	check := func(what string, round int, out, a, b pair) {
		t.Helper()
		for i, m := range primes {
			want := new(big.Int).Mul(value(a.of(i)), value(b.of(i)))
			quotient := new(big.Int).ModInverse(m, R)
			quotient.Neg(quotient).Mul(quotient, want).Mod(quotient, R)
			want.Add(want, quotient.Mul(quotient, m)).Rsh(want, uint(s.digits*digitBits))
			if got := value(out.of(i)); got.Cmp(want) != 0 || got.Cmp(new(big.Int).Lsh(m, 1)) >= 0 {
				t.Fatalf("%s, round %d, prime %d: %x, want %x", what, round, i, got, want)
			}
		}
	}
	one := big.NewInt(1)
	// of makes a number of one digit, again and again, below the highest ones.
	of := func(digit int64) *big.Int {
		v := new(big.Int)
		for range s.bits / digitBits {
			v.Lsh(v, digitBits).Add(v, big.NewInt(digit))
		}
		return v
	}
	// odds are numbers of as many bits as a prime whose digits, lowest ones, or -1/lowest ones are extremes: no more than to be odd is asked of them.
	high := new(big.Int).Lsh(one, uint(s.bits-1))
	odds := []*big.Int{
		new(big.Int).Sub(new(big.Int).Lsh(one, uint(s.bits)), one), new(big.Int).Or(high, one), new(big.Int).Or(high, big.NewInt(mask)),
		new(big.Int).Or(high, of(1<<51|1)), new(big.Int).Or(high, of(1<<51-1)),
	}
	for round := range 900 {
		if round >= 600 {
			primes = []*big.Int{odds[round%5], odds[round/5%5]}
			moduli = s.moduli(primes[0], primes[1])
		}
		a, b, out := s.pair(), s.pair(), s.pair()
		for i, m := range primes {
			four := new(big.Int).Lsh(m, 2)
			for _, x := range []pair{a, b} {
				v := new(big.Int)
				switch round {
				case 0:
					v.Sub(four, one)
				case 1: // nought
				case 2:
					v.Set(of(mask))
				case 3:
					v.Set(of(1 << 51))
				case 4:
					v.Set(of(1<<51 - 1))
				case 5:
					v.Set(of(1))
				case 6:
					v.Set(m)
				default:
					var err error
					if v, err = rand.Int(rand.Reader, four); err != nil {
						t.Fatal(err)
					}
					for j := range s.bits / digitBits * (round % 3) / 2 { // a half of its digits, or all, are a low one and one of the extremes
						digit := []uint64{0, mask, 1 << 51, 1<<51 - 1, 1<<51 + 1}[(round+j*(round%7))%5]
						for bit := range digitBits {
							v.SetBit(v, j*digitBits+bit, uint(digit>>bit&1))
						}
					}
				}
				set(x.of(i), v)
				if round%5 < 3 {
					swell(x.of(i))
				}
				if s.engine == fma && round%10 == 9 { // all of them extremes, but for the highest, which keeps the number below four times
					for j := range s.bits/digitBits - 1 {
						x.of(i)[s.lane(j+1)] = []uint64{uint64(lowest), uint64(highest), uint64(highest), uint64(lowest)}[(j+round/10)%(1+round/10%4)]
					}
					x.of(i)[s.lane(s.bits/digitBits)] = 1
				}
			}
		}
		if round%10 == 8 { // a product whose digits are the lowest all over: each of them carries into the next one at the very end
			for i, m := range primes {
				low := new(big.Int).SetBit(new(big.Int), s.bits/digitBits*digitBits, 1)
				low.Sub(low, of(int64(s.half))).Mul(low, R)
				factor := new(big.Int).Lsh(one, uint(round%digitBits))
				set(b.of(i), factor)
				set(a.of(i), low.Mul(low, factor.ModInverse(factor, m)).Mod(low, m))
			}
		}
		s.multiply(out, a, b, moduli)
		check("product", round, out, a, b)
		again := slices.Clone(a)
		if s.multiply(again, again, b, moduli); !slices.Equal(again, out) {
			t.Fatal("in place it is another product")
		}
		again = slices.Clone(a)
		s.square(again, moduli, 1)
		check("square", round, again, a, a)
		once := slices.Clone(again)
		s.square(again, moduli, 1)
		check("square of a square", round, again, once, once)
		if s.square(a, moduli, 2); !slices.Equal(again, a) {
			t.Fatal("two squares at once are another number")
		}
	}
}

func TestChoose(t *testing.T) { each(t, testChoose) }

func testChoose(t *testing.T, s shape) {
	n := 2 * s.lanes
	table := make(pair, (entries+4)*n) // more than there is to choose from
	for i := range table {
		table[i] = uint64(i/n*1000 + i%n)
	}
	before := slices.Clone(table)
	for i := range entries {
		other := (i*7 + 3) % entries
		got := s.pair()
		s.choose(got, table, uint64(i), uint64(other))
		for j := range got {
			want := i
			if j >= s.lanes {
				want = other
			}
			if j%s.lanes < s.digits && got[j] != uint64(want*1000+j) {
				t.Fatalf("entries %d and %d: lane %d is %d", i, other, j, got[j])
			}
		}
	}
	none := s.pair()
	if s.choose(none, table, entries, entries+3); slices.Max(none) != 0 {
		t.Error("entries behind the table are read")
	}
	if !slices.Equal(table, before) {
		t.Error("the table is another one")
	}
}

func TestNewRefuses(t *testing.T) {
	for _, bits := range []int{1024, 1536} {
		private, err := rsa.GenerateKey(rand.Reader, bits)
		if err != nil {
			t.Fatal(err)
		}
		if New(private) != nil {
			t.Errorf("a key of %d bits was taken", bits)
		}
	}
}

// TestNewPassesOver an engine whose results are wrong: this one has the digits of the other in the wrong order.
func TestNewPassesOver(t *testing.T) { each(t, testNewPassesOver) }

func testNewPassesOver(t *testing.T, s shape) {
	private, _ := generate(t, s, 0)
	allEngines, allShapes := engines, shapes
	defer func() { engines, shapes = allEngines, allShapes }()
	wrong := s
	wrong.engine = 0
	shapes = append(ours(), wrong)
	engines = []engine{0, s.engine}
	if k := New(private); k == nil || k.shape != s {
		t.Error("New did not pass over it")
	}
	if engines = []engine{0}; New(private) != nil {
		t.Error("New took it")
	}
}

// TestEngines: longer keys have an engine where the fastest has none for them.
func TestEngines(t *testing.T) {
	for _, s := range ours() {
		private, _ := generate(t, s, 0)
		if k := New(private); k == nil || k.shape.engine != s.engine && s.engine == engines[0] {
			t.Errorf("%v: New gave %v", s, k)
		}
	}
}

// TestFaultsDoNotLeave: a result that is wrong for one prime would give the other one away.
func TestFaultsDoNotLeave(t *testing.T) { each(t, testFaultsDoNotLeave) }

func testFaultsDoNotLeave(t *testing.T, s shape) {
	c := make([]byte, 2*s.size())
	c[200] = 7
	for what, spoil := range map[string]func(*Key){
		"the first exponent":  func(k *Key) { k.exponents[0][len(k.exponents[0])-1] ^= 1 },
		"the second exponent": func(k *Key) { k.exponents[1][5] ^= 16 },
		"a modulus":           func(k *Key) { k.moduli[7] ^= 1 << 30 },
		"R²":                  func(k *Key) { k.squares.of(1)[3] ^= 1 },
		"1/q":                 func(k *Key) { k.qinv.Add(k.qinv, k.p) },
		"q":                   func(k *Key) { k.qn.Add(k.qn, k.n) },
	} {
		_, k := generate(t, s, 0)
		spoil(k)
		if out, err := k.Private(c); !errors.Is(err, ErrFaulty) || out != nil {
			t.Errorf("%s is another: %x, %v", what, out, err)
		}
		if k.Faults() != 1 {
			t.Errorf("%s is another: %d faults are counted, want 1", what, k.Faults())
		}
	}
}

// TestWorkspacesAreCleared however an operation ends: they are kept, and have powers of numbers that are secrets.
func TestWorkspacesAreCleared(t *testing.T) { each(t, testWorkspacesAreCleared) }

func testWorkspacesAreCleared(t *testing.T, s shape) {
	before := workspaces.New
	defer func() { workspaces.New = before }()
	c := make([]byte, 2*s.size())
	c[200] = 7
	for what, spoil := range map[string]func(*Key){
		"right":    func(*Key) {},
		"faulty":   func(k *Key) { k.exponents[0][3] ^= 1 },
		"panicked": func(k *Key) { k.exponents[0] = nil }, // when the table is there
	} {
		_, k := generate(t, s, 0)
		spoil(k)
		var used []*workspace
		workspaces.New = func() any {
			used = append(used, new(workspace))
			return used[len(used)-1]
		}
		for i := 0; len(used) == 0 && i < 1000; i++ { // others may lie there
			func() {
				defer func() {
					if r := recover(); (r != nil) != (what == "panicked") {
						t.Errorf("%s: %v", what, r)
					}
				}()
				if _, err := k.Private(c); (err != nil) != (what == "faulty") {
					t.Errorf("%s: %v", what, err)
				}
			}()
			runtime.GC() // which takes what lies there, the second time
		}
		if len(used) == 0 {
			t.Fatal("no workspace was made")
		}
		for _, w := range used {
			if *w != (workspace{}) {
				t.Errorf("%s: a workspace was kept as it was", what)
			}
		}
	}
}

func TestPrintsNothing(t *testing.T) { each(t, testPrintsNothing) }

func testPrintsNothing(t *testing.T, s shape) {
	_, k := generate(t, s, 0)
	var out strings.Builder
	fmt.Fprintf(&out, "%v|%+v|%#v|%x", k, k, k, k)
	slog.New(slog.NewTextHandler(&out, nil)).Info("x", "key", k)
	if strings.Count(out.String(), "[redacted]") != 5 || out.Len() > 200 {
		t.Error(out.String())
	}
}

// FuzzPrivate asks math/big for the way back, which is much shorter and as sure: of the numbers below the modulus one alone leads there.
func FuzzPrivate(f *testing.F) {
	if len(engines) == 0 {
		f.Skip("this processor has none of the instructions")
	}
	f.Add([]byte{1})
	fast := map[*rsa.PrivateKey]*Key{}
	for _, s := range ours() {
		private, k := generate(f, s, 0)
		fast[private] = k
		f.Add(bytes.Repeat([]byte{0xff}, private.Size()-1))
		f.Add(private.Primes[0].Bytes())
	}
	f.Fuzz(func(t *testing.T, number []byte) {
		for private, k := range fast {
			c := new(big.Int).SetBytes(number)
			c.Mod(c, private.N)
			out, err := k.Private(c.FillBytes(make([]byte, private.Size())))
			if err != nil {
				t.Fatal(err)
			}
			m := new(big.Int).SetBytes(out)
			if m.Cmp(private.N) >= 0 || new(big.Int).Exp(m, big.NewInt(int64(private.E)), private.N).Cmp(c) != 0 {
				t.Fatalf("%x to the power of d is another number", c)
			}
		}
	})
}

// BenchmarkPrivate has crypto/rsa beside it, whose operation is a signature.
func BenchmarkPrivate(b *testing.B) {
	for _, s := range ours() {
		private, k := generate(b, s, 0)
		c := make([]byte, private.Size())
		c[10] = 3
		b.Run(s.String(), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := k.Private(c); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("%d/Go", 2*s.bits), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := rsa.SignPKCS1v15(nil, private, crypto.SHA256, c[:32]); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkMultiply(b *testing.B) {
	for _, s := range ours() {
		_, k := generate(b, s, 0)
		x := slices.Clone(k.squares)
		b.Run(s.String(), func(b *testing.B) {
			for b.Loop() {
				s.multiply(x, x, x, k.moduli)
			}
		})
	}
}

// BenchmarkSquare is of five at once, as many as a window has.
func BenchmarkSquare(b *testing.B) {
	for _, s := range ours() {
		_, k := generate(b, s, 0)
		x := slices.Clone(k.squares)
		b.Run(s.String(), func(b *testing.B) {
			for b.Loop() {
				s.square(x, k.moduli, windowBits)
			}
		})
	}
}

func BenchmarkChoose(b *testing.B) {
	for _, s := range ours() {
		table, x := make(pair, entries*2*s.lanes), s.pair()
		b.Run(s.String(), func(b *testing.B) {
			for b.Loop() {
				s.choose(x, table, 3, 9)
			}
		})
	}
}

// TestNothingIsLeftBehind on the stack, where the assembly has copies of the primes: stacks are passed on as they are.
func TestNothingIsLeftBehind(t *testing.T) { each(t, testNothingIsLeftBehind) }

func testNothingIsLeftBehind(t *testing.T, s shape) {
	_, k := generate(t, s, 0)
	secrets := map[uint64]bool{}
	var wg sync.WaitGroup
	wg.Go(func() { // elsewhere, so that nothing of this is on the stack in question
		for _, word := range k.moduli {
			secrets[word] = word != 0
		}
	})
	wg.Wait()
	w, c := new(workspace), bytes.Repeat([]byte{0x5a}, 2*s.size())
	leavesNothing(t, secrets, func() { k.exp(w, c) })
	if k.four != nil {
		w := new(fourspace)
		leavesNothing(t, secrets, func() { k.expFour(w, [][]byte{c, c, c, c}) })
	}
}

func leavesNothing(t *testing.T, secrets map[uint64]bool, exp func()) {
	t.Helper()
	// The runtime, when it interrupts a goroutine, puts registers on its stack as well, whatever is in them: that happens now and then.
	var found []string
	for range 5 {
		var below [256]uint64 // what was the frames of the assembly and of its callers
		sweep()
		exp()
		for i := range below {
			below[i] = *(*uint64)(unsafe.Add(unsafe.Pointer(&below), -8*(i+1)))
		}
		found = nil
		for i, word := range below {
			if secrets[word] {
				found = append(found, fmt.Sprintf("%#x, %d words below", word, i))
			}
		}
		if found == nil {
			return
		}
	}
	t.Errorf("of a prime, each time: %v", found)
}

// sweep writes over what is left of earlier calls on the stack.
//
//go:noinline
func sweep() {
	var room [16 << 10]byte
	runtime.KeepAlive(&room)
}

// TestConcurrently: nobody else has the workspace of an operation.
func TestConcurrently(t *testing.T) { each(t, testConcurrently) }

func testConcurrently(t *testing.T, s shape) {
	private, k := generate(t, s, 0)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			c := big.NewInt(int64(g + 2))
			for range 20 * 1024 / s.bits {
				m, err := k.Private(c.FillBytes(make([]byte, private.Size())))
				if err != nil {
					t.Error(err)
				} else if c2 := new(big.Int).SetBytes(m); c2.Exp(c2, big.NewInt(int64(private.E)), private.N).Cmp(c) != 0 {
					t.Errorf("%v to the power of d is another number", c)
				}
			}
		})
	}
	wg.Wait()
}

// TestRoundingIsGosAfterwards: an engine may round towards zero, which nobody else on the thread does.
func TestRoundingIsGosAfterwards(t *testing.T) { each(t, testRoundingIsGosAfterwards) }

func testRoundingIsGosAfterwards(t *testing.T, s shape) {
	_, k := generate(t, s, 0)
	x := slices.Clone(k.squares)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for what, call := range map[string]func(){
		"a product": func() { s.multiply(x, x, x, k.moduli) },
		"squares":   func() { s.square(x, k.moduli, 2) },
	} {
		call()
		if sum := sum(1, 0x1.8p-53); sum != 1+0x1p-52 {
			t.Errorf("after %s 1 + 1.5·2^-53 = 1 + %g", what, sum-1)
		}
	}
}

// sum is made when it is called: neither by the compiler nor before.
//
//go:noinline
func sum(a, b float64) float64 { return a + b }
