"""The demonstration's application, as a user would write it: one job that queries, writes files and sends a mail."""

import csv
import os
import smtplib
from datetime import date, timedelta
from email.message import EmailMessage
from html import escape
from pathlib import Path

from rota import RetryPolicy, Rota, RunContext
from rota.demo.shop import Line, sales_of

app = Rota()


@app.job("sales_report", retry=RetryPolicy(max_attempts=3, initial_delay=timedelta(seconds=30), jitter=0))
def sales_report(ctx: RunContext) -> dict[str, object]:
    """Yesterday's sales as HTML and CSV, mailed to the customer."""
    folder = Path(os.environ["ROTA_DEMO_FOLDER"])
    day = ctx.scheduled_local.date() - timedelta(days=1)
    ctx.progress(0.2, f"querying the sales of {day}")
    lines = sales_of(folder / "shop.db", day)
    ctx.progress(0.5, "writing the report")
    report = folder / f"{ctx.run_id}.html"
    table = folder / f"{ctx.run_id}.csv"
    report.write_text(to_html(day, lines))
    write_csv(table, lines)
    ctx.progress(0.8, "sending the mail")
    send_mail(ctx, str(ctx.params["recipient"]), day, report, table)
    ctx.progress(1.0, "sent")
    return {
        "day": str(day),
        "revenue": round(sum(line.revenue for line in lines), 2),
        "report": report.name,
        "table": table.name,
    }


def send_mail(ctx: RunContext, recipient: str, day: date, report: Path, table: Path) -> None:
    """The Message-ID is the run's: a mail that is sent again by a further attempt can be told from a new one."""
    mail = EmailMessage()
    mail["Message-ID"] = f"<{ctx.idempotency_key}@rota.local>"
    mail["From"] = "reports@rota.local"
    mail["To"] = recipient
    mail["Subject"] = f"Sales of {day}"
    mail.set_content(f"The sales of {day} are attached.")
    mail.add_alternative(report.read_text(), subtype="html")
    mail.add_attachment(table.read_text(), subtype="csv", filename=table.name)
    with smtplib.SMTP("127.0.0.1", int(os.environ["ROTA_DEMO_SMTP_PORT"])) as server:
        server.send_message(mail)


def to_html(day: date, lines: list[Line]) -> str:
    rows = "".join(
        f"<tr><td>{escape(line.product)}</td><td>{line.pieces}</td><td>{line.revenue:.2f}</td></tr>"
        for line in lines
    )
    total = sum(line.revenue for line in lines)
    return (
        f"<!doctype html><title>Sales of {day}</title><h1>Sales of {day}</h1>"
        f"<table><tr><th>Product</th><th>Pieces</th><th>Revenue</th></tr>{rows}"
        f"<tr><td>Total</td><td></td><td>{total:.2f}</td></tr></table>"
    )


def write_csv(path: Path, lines: list[Line]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["product", "pieces", "revenue"])
        writer.writerows([line.product, line.pieces, f"{line.revenue:.2f}"] for line in lines)
