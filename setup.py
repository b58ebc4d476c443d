"""What pyproject.toml cannot say: the wheel holds conf/ and the recipes of data/ inside the package, mt."""

from setuptools import find_packages, setup

setup(
    packages=[*find_packages(include=["mt", "mt.*"]), "mt.conf", "mt.recipes"],
    package_dir={"mt.conf": "conf", "mt.recipes": "data"},
)
