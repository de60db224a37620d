"""A year of notes in two languages, always the same, with questions whose answers are known.

`write_year` writes daily logs, projects, people and core facts: about 1,500 chunks. Most lines are everyday work. The
lines of `FACTS` are spread among them, and many everyday lines share words with them, so that a keyword alone or the
general topic leads to the wrong line.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

FIRST_DAY = date(2025, 1, 6)


@dataclass(frozen=True)
class Question:
    """A question, the note that answers it, and a part of the line that does."""

    text: str
    path: str
    line: str


# The line, its note (empty: a daily log), and the questions it answers.
FACTS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    # English
    (
        "Luna must never get grapes, raisins or onions: the vet says they damage her kidneys.",
        "memory/home/luna.md",
        ("what can the cat not eat?",),
    ),
    (
        "Luna is a grey cat, born in March 2021, chip number 941000024.",
        "memory/home/luna.md",
        ("how old is the cat?",),
    ),
    (
        "Backups go to the rented server in Falkenstein with restic, every night at 02:30; we keep 30 daily copies.",
        "memory/projects/backups.md",
        ("what did we decide about backups?", "where are the backups stored?"),
    ),
    (
        "Decision: the invoice service moves from MySQL to PostgreSQL 16, because of partial indexes.",
        "memory/projects/invoices.md",
        ("which database does the invoice service use?",),
    ),
    (
        "Priya takes over support from Tom on the first of June.",
        "memory/people/team.md",
        ("who does support after Tom?",),
    ),
    (
        "The door code of the office is 4417#, it changes every quarter.",
        "memory/office.md",
        ("how do I get into the office?",),
    ),
    (
        "Anna is allergic to penicillin and carries an EpiPen for wasps.",
        "memory/people/anna.md",
        ("which medicine must Anna not take?",),
    ),
    (
        "Anna and I got married on 14 September 2019 in Porto.",
        "memory/people/anna.md",
        ("when is our wedding anniversary?",),
    ),
    (
        "Rent is 1,480 euros, due on the third working day, to the account of Hausverwaltung Kern.",
        "memory/home/flat.md",
        ("how much do we pay for the flat?",),
    ),
    (
        "The car's inspection is due in November 2026; the garage is Auto Weber.",
        "memory/home/car.md",
        ("when does the car need its next inspection?",),
    ),
    (
        "Root cause of the outage: the certificate of the payment gateway expired, and the warning mail went to spam.",
        "",
        ("what was the reason for the payment outage?",),
    ),
    (
        "We chose uv instead of Poetry for all Python repositories.",
        "memory/projects/tooling.md",
        ("which tool manages our Python packages?",),
    ),
    (
        "Customers in Norway pay 25 % VAT, digital books are exempt.",
        "memory/projects/invoices.md",
        ("what is the tax rate for Norwegian customers?",),
    ),
    ("Marco's flight lands on 9 May at 18:40 in Terminal 2.", "", ("when does Marco arrive?",)),
    (
        "The wifi for guests is called Heron, password moss-lantern-42.",
        "memory/home/flat.md",
        ("what is the guest wifi called?",),
    ),
    # Chinese
    ("豆豆对鸡肉过敏，只能吃鱼肉和羊肉做的狗粮。", "memory/家里/豆豆.md", ("狗不能吃什么？",)),
    ("奶奶的降压药早饭后吃一片，千万不要和葡萄柚一起吃。", "memory/家里/奶奶.md", ("老人的药有什么忌口？",)),
    (
        "决定不用 Kubernetes，三台机器用 systemd 和 Ansible 就够了。",
        "memory/项目/部署.md",
        ("我们为什么没有上 Kubernetes？",),
    ),
    (
        "测试环境的数据库密码放在密码库的“研发/测试”条目里，不要写进代码。",
        "memory/项目/部署.md",
        ("测试库的密码去哪里找？",),
    ),
    (
        "客户王总只接受周四下午开会，而且要提前两天发议程。",
        "memory/客户/王总.md",
        ("跟王总约时间要注意什么？",),
    ),
    ("报销必须在当月 25 号之前提交，超过五千元要财务总监签字。", "memory/公司.md", ("报销最晚什么时候交？",)),
    ("小雨的家长会定在 10 月 17 日晚上七点，三年级二班教室。", "", ("孩子的家长会是哪天？",)),
    ("网站变慢的原因是图片没有压缩，首页一张图有八兆。", "", ("网页打开很慢是怎么回事？",)),
    ("以后统一用飞书发通知，不再用邮件群发。", "memory/公司.md", ("现在用什么发通知？",)),
    ("我的右膝半月板有旧伤，医生说不能跑步，可以游泳。", "memory/家里/健康.md", ("我适合做什么运动？",)),
    ("租的仓库在闵行，合同到 2027 年 3 月，押金两个月。", "memory/公司.md", ("仓库的合同什么时候到期？",)),
    ("妈妈的生日是农历八月初六，她喜欢桂花糕。", "memory/家里/妈妈.md", ("送妈妈什么生日礼物好？",)),
)

HEADINGS = {
    "memory/home/luna.md": "Luna, our cat",
    "memory/people/anna.md": "Anna, my wife",
    "memory/家里/豆豆.md": "豆豆，我们家的狗",
}

# Everyday lines. Several share words with the facts above.
ENGLISH = (
    "Reviewed {person}'s change to the {part}; two comments about {thing}.",
    "Call with {person} about {thing}, {minutes} minutes, nothing decided.",
    "Fixed a failing test of the {part}: the clock was read twice.",
    "Bought cat food and litter, {minutes} euros.",
    "The cat slept on the keyboard while I answered mail about {thing}.",
    "The cat ate her breakfast late and then watched the pigeons.",
    "Backup of the laptop ran for {minutes} minutes without errors.",
    "{person} asked again about {thing}; I will look into it on {day}.",
    "Lunch with {person} at the Vietnamese place, talked about {thing}.",
    "Deployed the {part}, version 3.{minutes}, no alarms.",
    "Wrote {minutes} lines of documentation for the {part}.",
    "Payments worked all day; {minutes} orders came in.",
    "Database migration of the {part} took {minutes} minutes on the test machine.",
    "Ran {minutes} kilometres along the river with {person}.",
    "Paid the electricity bill of the flat, {minutes} euros.",
    "Meeting about {thing} was moved to {day} because {person} is ill.",
    "Anna cooked with {person}; we ate outside for the first time this year.",
    "The train was {minutes} minutes late, read about {thing} on the way.",
    "Refactored the {part} and removed {minutes} lines.",
    "Office was loud today, worked from the library after noon.",
    "Support tickets: {minutes} new, most about {thing}.",
    "Interviewed a candidate with {person}; good questions about {thing}.",
)
CHINESE = (
    "和{person}讨论了{thing}，还没有结论。",
    "修了{part}的一个小问题，测试跑了{minutes}分钟。",
    "带豆豆去公园散步，走了{minutes}分钟，它追了一只鸽子。",
    "给豆豆买了新的狗窝和玩具，花了{minutes}元。",
    "{person}问起{thing}，约好{day}再看。",
    "部署了{part}，观察了{minutes}分钟，一切正常。",
    "数据库备份完成，用时{minutes}分钟。",
    "陪奶奶去医院复查，排队等了{minutes}分钟。",
    "写了{part}的文档，大约{minutes}行。",
    "小雨的作业写到九点，数学错了{minutes}道。",
    "公司例会讨论{thing}，{person}做记录。",
    "客户来电询问{thing}，已经转给{person}。",
    "开会时{person}介绍了{part}的进展，大家没有意见。",
    "网站今天有{minutes}个订单，没有报错。",
    "晚上游泳{minutes}分钟，肩膀有点酸。",
    "妈妈打电话来，说家里的桂花开了。",
    "跟{person}吃午饭，聊到{thing}。",
    "仓库盘点，少了{minutes}件，明天再核对。",
    "整理了{thing}的资料，发给{person}。",
    "{part}的代码评审提了{minutes}条意见。",
)
WORDS = {
    "en": {
        "person": ("Tom", "Priya", "Marco", "Sofia", "Jonas", "Elif", "Grace", "Henrik"),
        "part": (
            "invoice service",
            "search page",
            "mobile app",
            "login form",
            "report job",
            "image resizer",
            "API gateway",
        ),
        "thing": (
            *(
                "the roadmap",
                "the hiring plan",
                "database costs",
                "the new office",
                "the summer party",
                "VAT forms",
            ),
            *(
                "the certificate renewal",
                "customer feedback",
                "the support rota",
                "the backup budget",
                "old invoices",
            ),
        ),
        "day": ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday"),
    },
    "zh": {
        "person": ("小李", "王总", "老张", "陈静", "阿明", "赵工", "小雨妈妈"),
        "part": ("登录页面", "订单系统", "报表任务", "手机端", "图片服务", "通知模块"),
        "thing": (
            "明年的预算",
            "部署方案",
            "客户反馈",
            "数据库费用",
            "招聘计划",
            "报销流程",
            "新办公室",
            "仓库租金",
            "飞书机器人",
        ),
        "day": ("周一", "周二", "周三", "周四", "周五"),
    },
}


def write_year(root: Path, *, days: int = 365) -> list[Question]:
    """Write the workspace. Return the questions, each with the note and line that answers it."""
    notes: dict[str, list[str]] = {}
    chance = random.Random(7)
    for number in range(days):
        day = FIRST_DAY + timedelta(days=number)
        language = "zh" if number % 2 else "en"
        heading = "记录" if language == "zh" else "Log"
        lines = [f"- {line}" for line in everyday(chance, language)]
        notes[f"memory/{day.isoformat()}.md"] = [f"# {day.isoformat()} {heading}", "", *lines]
    questions: list[Question] = []
    dated = sorted(notes)
    for number, (line, path, asked) in enumerate(FACTS):
        # English and Chinese days alternate, and a line belongs to a day of its language.
        days_of_language = dated[0 if line.isascii() else 1 :: 2]
        where = path or days_of_language[(37 * number + 5) % len(days_of_language)]
        notes.setdefault(where, [f"# {HEADINGS.get(where, Path(where).stem)}", ""]).append(f"- {line}")
        questions += [Question(text, where, line) for text in asked]
    for path, lines in notes.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return questions


def everyday(chance: random.Random, language: str) -> Iterator[str]:
    """Yield five everyday lines, which answer none of the questions."""
    for form in chance.sample(ENGLISH if language == "en" else CHINESE, 5):
        chosen = {name: chance.choice(words) for name, words in WORDS[language].items()}
        yield form.format(minutes=chance.randint(3, 95), **chosen)
