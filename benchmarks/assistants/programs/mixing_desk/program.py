"""Mix four tracks, block by block, while the faders of the desk move."""

import torch

torch.manual_seed(9)
RATE, BLOCK = 8000, 1024

DESK = {
    "drums": {"gain": 0.0, "pan": 0.5},
    "bass": {"gain": -3.0, "pan": 0.5},
    "keys": {"gain": -6.0, "pan": 0.2},
    "voice": {"gain": -1.0, "pan": 0.7},
}

# time in blocks, track, control, value
AUTOMATION = [
    (1, "voice", "gain", -2.5),
    (2, "voice", "gain", -4.0),
    (3, "keys", "pan", 0.3),
    (4, "keys", "pan", 0.45),
    (5, "drums", "gain", -8.0),
    (6, "drums", "gain", -16.0),
    (7, "bass", "gain", -7.0),
    (8, "bass", "pan", 0.35),
    (9, "voice", "pan", 0.6),
    (10, "keys", "gain", -2.0),
    (11, "drums", "pan", 0.9),
]


def fader(name):
    """Left and right amplitude of a track."""
    track = DESK[name]
    amplitude = 10 ** (track["gain"] / 20)
    return amplitude * (1 - track["pan"]) ** 0.5, amplitude * track["pan"] ** 0.5


@torch.compile(backend="aot_eager")
def mix(tracks):
    """Mix a block of all tracks to two channels and limit it softly."""
    left, right = 0.0, 0.0
    for name, samples in tracks.items():
        a, b = fader(name)
        left = left + a * samples
        right = right + b * samples
    return torch.tanh(torch.stack([left, right]))


def set_control(name, control, value):
    DESK[name][control] = value


def block(name, number):
    time = torch.arange(number * BLOCK, (number + 1) * BLOCK) / RATE
    frequency = {"drums": 60.0, "bass": 110.0, "keys": 440.0, "voice": 330.0}[name]
    return torch.sin(6.2832 * frequency * time) * (1 + 0.2 * torch.sin(3 * time))


energy = torch.zeros(2)
for number in range(12):
    for when, *control in AUTOMATION:
        if when == number:
            set_control(*control)
    mixed = mix({name: block(name, number) for name in DESK})
    energy += mixed.square().mean(1)
print(f"result: {energy[0].item():.5f} {energy[1].item():.5f}")
