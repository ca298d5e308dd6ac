package demo

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"math"
	"math/rand/v2"
	"sync"
)

const (
	cataloguePath = "/files/catalogue.bin"
	catalogueSize = 5 << 20

	// The bytes of a range request that begins in the middle of the catalogue.
	sampleRange = "bytes=2621440-2686975"
)

// makeMedia draws a picture for each loaf and fills the catalogue, once for all
// Origins, which only read them.
var makeMedia = sync.OnceValue(func() map[string]static {
	media := make(map[string]static, len(loaves)+1)
	for _, l := range loaves {
		body := drawLoaf(portraits[l.Slug])
		media[l.Image()] = static{"image/png", forMedia, strongTag(body), body}
	}
	body := make([]byte, catalogueSize)
	rand.NewChaCha8([32]byte([]byte("flour, water, salt and long time"))).Read(body) //nolint:errcheck // never fails
	media[cataloguePath] = static{"application/octet-stream", forMedia, strongTag(body), body}
	return media
})

// portrait says what a loaf looks like from above. Lengths are in units of half
// the picture's height, angles in radians.
type portrait struct {
	crust, crumb, table color.RGBA
	length, width       float64 // half axes
	squareness          float64 // exponent of the outline: 2 is an ellipse
	turn                float64
	cuts                int
	cutTurn             float64 // against the loaf's long axis
	cutLength           float64
	seed                uint64
}

var portraits = map[string]portrait{
	"rye":      {color.RGBA{0x7a, 0x4a, 0x2c, 255}, color.RGBA{0xd8, 0xbf, 0x9c, 255}, color.RGBA{0xd9, 0xcf, 0xbd, 255}, .74, .72, 2, .1, 3, .9, .46, 1},
	"country":  {color.RGBA{0xb5, 0x6f, 0x33, 255}, color.RGBA{0xf0, 0xdc, 0xb8, 255}, color.RGBA{0xb9, 0xc2, 0xb4, 255}, .95, .62, 2.2, -.25, 1, .12, .66, 2},
	"baguette": {color.RGBA{0xc6, 0x86, 0x3c, 255}, color.RGBA{0xf6, 0xe6, 0xc4, 255}, color.RGBA{0xc9, 0xb8, 0xa0, 255}, 1.35, .24, 2.8, -.35, 5, .35, .24, 3},
	"brioche":  {color.RGBA{0xc9, 0x7e, 0x2a, 255}, color.RGBA{0xf4, 0xc9, 0x74, 255}, color.RGBA{0xcf, 0xc4, 0xd0, 255}, .92, .5, 4, .12, 4, 1.57, .4, 4},
}

const (
	pictureWidth  = 480
	pictureHeight = 320

	// Shades of each of the three colours. Few, with grain between them: the
	// picture looks printed, and compresses to a size worth caching.
	shades = 12
)

// drawLoaf draws a loaf on a table, as a PNG of some 50 KB.
func drawLoaf(p portrait) []byte {
	rng := rand.New(rand.NewPCG(p.seed, 0))
	img := image.NewPaletted(image.Rect(0, 0, pictureWidth, pictureHeight), p.palette())
	for y := range pictureHeight {
		for x := range pictureWidth {
			grain := rng.Float64() - .5
			ramp, light := p.at(
				(float64(x)-pictureWidth/2)/(pictureHeight/2),
				(float64(y)-pictureHeight/2)/(pictureHeight/2),
				grain,
			)
			shade := int(math.Floor(light*shades + grain))
			img.SetColorIndex(x, y, uint8(ramp*shades+min(max(shade, 0), shades-1)))
		}
	}
	var out bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestSpeed}
	if err := encoder.Encode(&out, img); err != nil {
		panic("demo: a picture in memory cannot be encoded: " + err.Error())
	}
	return out.Bytes()
}

// The colour ramps of the palette.
const (
	onTable = iota
	onCrust
	onCrumb
)

func (p portrait) palette() color.Palette {
	palette := make(color.Palette, 0, 3*shades)
	for _, c := range []color.RGBA{p.table, p.crust, p.crumb} {
		for i := range shades {
			light := .45 + .6*float64(i)/(shades-1)
			palette = append(palette, color.RGBA{scale(c.R, light), scale(c.G, light), scale(c.B, light), 255})
		}
	}
	return palette
}

func scale(c uint8, by float64) uint8 { return uint8(min(float64(c)*by, 255)) }

// at says what lies at a point, and how much light falls on it (0 to 1).
func (p portrait) at(x, y, grain float64) (ramp int, light float64) {
	sin, cos := math.Sincos(p.turn)
	u, v := x*cos+y*sin, y*cos-x*sin // along and across the loaf

	outline := p.outline(u, v) + .02*grain
	if outline >= 1 {
		// Its shadow falls to the lower right.
		shadow := p.outline(u-.06*cos-.09*sin, v-.09*cos+.06*sin)
		return onTable, .82 - .12*y - .5*max(0, 1.12-max(shadow, .8))/.32
	}
	height := math.Sqrt(max(0, 1-outline*outline))
	// Lit from the upper left.
	light = .30 + .52*height - .20*(x+y)*(1-height*.5)
	if cut := p.cut(u, v); cut+.15*grain < 1 && outline < .93 {
		return onCrumb, light + .28 - .3*cut*cut
	}
	return onCrust, light
}

// outline is 0 in the middle of the loaf, 1 at its edge.
func (p portrait) outline(u, v float64) float64 {
	u, v = math.Abs(u/p.length), math.Abs(v/p.width)
	if far := max(u, v); far > 2 {
		return far // far out on the table the exact value does not matter
	}
	e := p.squareness
	return math.Pow(math.Pow(u, e)+math.Pow(v, e), 1/e)
}

// cut is below 1 inside one of the baker's cuts, 0 in the middle of it.
func (p portrait) cut(u, v float64) float64 {
	nearest := math.Inf(1)
	sin, cos := math.Sincos(p.cutTurn)
	for i := range p.cuts {
		middle := p.length * 1.5 * ((float64(i)+.5)/float64(p.cuts) - .5)
		along := (u-middle)*cos + v*sin
		across := v*cos - (u-middle)*sin
		t := along / p.cutLength
		if math.Abs(t) < 1 {
			nearest = min(nearest, math.Abs(across+.04*t*t)/(.055*(1-t*t)))
		}
	}
	return nearest
}
