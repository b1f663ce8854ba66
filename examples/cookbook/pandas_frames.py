"""Two runs of a small laboratory as pandas frames: ``python examples/cookbook/pandas_frames.py``."""

import tempfile
from pathlib import Path

import airloom


def main() -> None:
    """Prints the round-trip time of two delays by quantile."""
    scenario = airloom.Scenario.model_validate(
        {
            "name": "delays",
            "nodes": {"h1": {}, "h2": {}},
            "links": [{"name": "wire", "ends": ["h1", "h2"]}],
            "measurements": [
                {"name": "rtt", "ping": {"from": "h1", "to": "h2", "count": 20, "interval": "20 ms"}}
            ],
            "sweep": {"links[wire].delay": ["1 ms", "5 ms"]},
        }
    )
    with tempfile.TemporaryDirectory() as folder:
        result = airloom.run(scenario, out=Path(folder) / "delays")
        samples = result.samples("rtt", "rtt")
    quantiles = samples.groupby("links[wire].delay")["value"].quantile([0.5, 0.95]).unstack()
    print((quantiles / 1e6).round(2))


if __name__ == "__main__":
    main()
