# Sourced: `small_data DIR` packs 512 grey pictures and writes DIR/job.toml, which trains conditional-net on them.
small_data() {
  python3 - "$1" <<'PY'
import random, struct, sys
draw = random.Random(7)
with open(sys.argv[1] + "/images", "wb") as file:
    file.write(struct.pack(">IIII", 0x803, 512, 28, 28) + draw.randbytes(512 * 784))
with open(sys.argv[1] + "/labels", "wb") as file:
    file.write(struct.pack(">II", 0x801, 512) + bytes(draw.randrange(10) for _ in range(512)))
PY
  "$trireme" pack --field image="$1/images" --field label="$1/labels" --files 4 --output "$1/train" >/dev/null
  cat >"$1/job.toml" <<'TOML'
plugin = "conditional-net"
device = "cpu"
[data]
fields = { image = "/image", label = "/label" }
train = ["train-*.h5"]
eval = ["train-00000-*.h5"]
transform = ["image: scale 1/255"]
[train]
batch = 32
steps = 12
micro_batches = 2
[optimizer]
kind = "adamw"
lr = 1e-3
[eval]
every = "6 steps"
[checkpoint]
every_steps = 5
TOML
}
