import torch


@torch.compile
def transcribe(audio, language, beams):
    shift = 1.0 if language == "de" else 0.0
    return audio.mean() * beams + shift


results = []
for seconds, language, beams in ((4, "en", 2), (6, "de", 3), (8, "en", 4), (10, "de", 5)):
    audio = torch.ones(seconds * 4)
    results.append(transcribe(audio, language, beams))
