"""get.py KIND URL: prints the page, by one of the libraries that programs in Python use."""
import asyncio
import sys


def by_urllib(url):
    import urllib.request
    return urllib.request.urlopen(url).read().decode()


def by_requests(url):
    import requests
    answer = requests.get(url)
    answer.raise_for_status()
    return answer.text


def by_httpx(url):
    import httpx
    answer = httpx.get(url, timeout=None)
    answer.raise_for_status()
    return answer.text


def by_aiohttp(url, trust_env=False):
    import aiohttp

    async def get():
        async with aiohttp.ClientSession(trust_env=trust_env) as session, session.get(url) as answer:
            answer.raise_for_status()
            return await answer.text()
    return asyncio.run(get())


def by_aiohttp_env(url):
    return by_aiohttp(url, trust_env=True)


if __name__ == "__main__":
    sys.stdout.write(globals()[f"by_{sys.argv[1]}"](sys.argv[2]))
