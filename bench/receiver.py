"""A web server that takes whatever is posted and answers 204, on the port that it is given; started by `sending`."""

import sys

from aiohttp import web


async def take(request: web.Request) -> web.Response:
    await request.read()
    return web.Response(status=204)


def main(port: int) -> None:
    application = web.Application()
    application.router.add_post("/", take)
    web.run_app(application, host="127.0.0.1", port=port, access_log=None, print=None)


if __name__ == "__main__":
    main(int(sys.argv[1]))
