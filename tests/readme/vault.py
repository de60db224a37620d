"""An Obsidian vault in two languages, always the same, with forty questions whose answers are known.

The notes are what people keep: front matter, links, tasks, callouts and tags, in many folders. `write_vault` adds
daily notes of everyday work, hidden folders and a folder of packages. The questions use other words than the notes.
"""

from __future__ import annotations

import random
from datetime import timedelta
from pathlib import Path

from year_of_notes import FIRST_DAY, Question, everyday

NOTES = {
    "Areas/House/Heating.md": """\
---
tags: [house]
---
# Heating

The boiler is a Viessmann Vitodens 200, installed in 2018.

- Pressure must stay between 1.5 and 2 bar; the filling tap is behind the washing machine.
- Mr. Brandt from Wärme GmbH services it every September, phone 0351 44 80 12.
- [ ] Bleed the radiator in the guest room before winter

> [!warning]
> Never turn off the circulation pump: the pipes under the roof froze in 2021.
""",
    "Areas/House/Garden.md": """\
# Garden

The apple tree is a *Boskoop*; it is pruned in late February, never in frost.
Tomatoes did badly on the north wall, so they move to the terrace next year.

## Tools
- The hedge trimmer was lent to the Novaks in May.
- Key of the shed: on the hook behind the cellar door.
""",
    "Areas/Health.md": """\
# Health

- Blood group: A negative.
- Dr. Okafor found a mild iron deficiency in March and prescribed tablets for three months.
- My glasses: -2.25 left, -1.75 right, from Optik Lindner.
- Tetanus vaccination was renewed on 2024-06-11.
""",
    "Areas/Money/Insurance.md": """\
# Insurance

| what | who | number |
| --- | --- | --- |
| Liability | Huk | 44-100928 |
| Bicycle | Wertgarantie | W-7781 |

We cancelled the travel insurance because the credit card already covers trips.
The household contents are insured for 65,000 euros since the move.
""",
    "Projects/Compass/Decisions.md": """\
# Compass: decisions

Part of [[Compass]].

## 2026-01-14 Hosting
We stay with Hetzner; moving to AWS would triple the monthly bill.

## 2026-02-03 Authentication
Passwords are gone: everybody signs in with passkeys, and a mail link is the fallback.

## 2026-03-20 Mobile
The native app is postponed until autumn, because two of three users only open the site on a laptop.
""",
    "Projects/Compass/Runbook.md": """\
# Runbook

1. Restart the queue worker with `systemctl restart compass-queue`; jobs that were running are retried.
2. If the map stays grey, the tile key has reached its quota: the spare one is in 1Password under "Compass tiles".
3. Releases go out on Tuesdays before noon, never on the day before a holiday.
""",
    "Projects/Book/Outline.md": """\
---
aliases: [novel]
---
# Outline

The story begins with a letter that arrives forty years late.
Ines, the narrator, repairs clocks in Lisbon and has not spoken to her brother since 1998.
The publisher wants the first hundred pages by the end of June.
""",
    "People/Hannah.md": """\
# Hannah

- Godchild, born on 3 August 2017; collects fossils.
- Cannot have nuts, not even traces.
- Her parents are [[Jule]] and Mattis, they moved to Utrecht.
""",
    "People/Team.md": """\
# Team

- Wei looks after the database and is away every Friday afternoon.
- Olga speaks Ukrainian, Polish and German; ask her first about translations.
- The intern, Samir, stays until the end of September.
""",
    "Reading/Deep Work.md": """\
# Deep Work

#book by Cal Newport

What I took from it: two hours without mail in the morning are worth more than an afternoon with it.
""",
    "生活/家务.md": """\
# 家务

- 空调滤网每年五月和十月各洗一次，洗完晾干再装回去。
- 煤气表在厨房水槽下面，读数每月二十号报给物业。
- 洗碗机的软水盐放在阳台柜子的第二层。
- 备用钥匙寄存在楼下小超市的周阿姨那里。
""",
    "生活/健康.md": """\
---
tags: [健康]
---
# 健康

体检报告说尿酸偏高，医生让我少喝啤酒、少吃海鲜。
青霉素皮试阳性，看病时要提前说。
牙齿：左上智齿横着长，李医生建议年底前拔掉。
""",
    "生活/理财.md": """\
# 理财

## 规矩
- 单只股票不超过总资产的百分之十。
- 每月工资到账当天，先转三千到定投账户。

## 房贷
利率是 3.1%，提前还款要等满三年才不收违约金。
""",
    "生活/旅行/云南.md": """\
# 云南之行

- 丽江住在古城外的“听雨”客栈，老板免费接站。
- 香格里拉海拔高，第一天不要洗澡，走路要慢。
- 租车押金五千，还车后两周才退。
""",
    "工作/项目/凤凰.md": """\
# 凤凰项目

> [!info] 目标
> 九月底以前让老系统下线。

- 消息队列从 RabbitMQ 换成了 Kafka，因为单机扛不住大促的流量。
- 灰度发布先放百分之五的用户，观察一天再放开。
- 生产库的只读账号要找运维老孙申请，当天就能开好。
- 上线窗口是每周三晚上十点到十二点。
""",
    "工作/会议/二月评审.md": """\
# 二月评审

结论：搜索框放到页面顶部，筛选条件默认收起。
设计师阿凯认为深色模式要等新的色板定下来再做。
[[凤凰]] 的压测没有通过，瓶颈是数据库连接数太小。
""",
    "工作/同事.md": """\
# 同事

- 老孙管服务器，值班电话尾号 6612。
- 小唐刚休完产假回来，下午四点半要接孩子。
- 法务林姐要求所有合同提前五个工作日给她。
""",
    "学习/日语.md": """\
# 日语

- N2 考试报名在三月底截止，考点选了上海外国语大学。
- 最容易错的是自动词和他动词，例句记在手机备忘录里。
- 每天早上通勤的时候听二十分钟 NHK 新闻。
""",
    "学习/读书/人类简史.md": """\
# 《人类简史》

作者认为，农业革命让人类总体的食物变多了，但是每个人过得更辛苦。
借自朋友大刘，国庆前要还给他。
""",
    "家人/外公.md": """\
# 外公

- 1938 年生，年轻时在鞍钢当电焊工。
- 听力不好，打电话要讲慢一点，最好打视频。
- 最爱吃的是酸菜白肉锅，不能放太多盐。
""",
}

QUESTIONS = tuple(
    Question(*row)
    for row in (
        ("how do I refill the water of the boiler?", "Areas/House/Heating.md", "the filling tap is behind"),
        ("who comes to check the heating?", "Areas/House/Heating.md", "Mr. Brandt from"),
        ("why must the pump keep running?", "Areas/House/Heating.md", "the pipes under the roof froze"),
        ("when should I cut the apple tree?", "Areas/House/Garden.md", "pruned in late February"),
        ("who has our hedge trimmer?", "Areas/House/Garden.md", "lent to the Novaks"),
        ("how do I open the shed?", "Areas/House/Garden.md", "on the hook behind"),
        ("what is my blood type?", "Areas/Health.md", "A negative"),
        ("what did the doctor say about my iron?", "Areas/Health.md", "mild iron deficiency"),
        ("which lenses do I need?", "Areas/Health.md", "-2.25 left"),
        ("why do we have no travel insurance?", "Areas/Money/Insurance.md", "cancelled the travel insurance"),
        ("for how much are our belongings insured?", "Areas/Money/Insurance.md", "65,000 euros"),
        ("why did we not move to Amazon's cloud?", "Projects/Compass/Decisions.md", "would triple"),
        ("how do people log in to Compass?", "Projects/Compass/Decisions.md", "signs in with passkeys"),
        ("when do we build the phone app?", "Projects/Compass/Decisions.md", "postponed until autumn"),
        ("the map shows no tiles, what now?", "Projects/Compass/Runbook.md", "If the map stays grey"),
        ("on which weekday do we ship?", "Projects/Compass/Runbook.md", "Releases go out on Tuesdays"),
        ("what is the job of the main character in my novel?", "Projects/Book/Outline.md", "repairs clocks"),
        ("what food is dangerous for Hannah?", "People/Hannah.md", "Cannot have nuts"),
        ("who can help with translating?", "People/Team.md", "Olga speaks"),
        ("how long will Samir work with us?", "People/Team.md", "stays until the end"),
        ("空调什么时候该清洗？", "生活/家务.md", "空调滤网"),
        ("去哪里看煤气用了多少？", "生活/家务.md", "煤气表在"),
        ("忘带钥匙了怎么办？", "生活/家务.md", "备用钥匙"),
        ("我为什么要少吃虾和螃蟹？", "生活/健康.md", "尿酸偏高"),
        ("我对什么药过敏？", "生活/健康.md", "青霉素"),
        ("智齿要不要拔？", "生活/健康.md", "智齿横着长"),
        ("一只股票最多买多少？", "生活/理财.md", "百分之十"),
        ("房贷能提前还吗？", "生活/理财.md", "提前还款"),
        ("去丽江住哪里？", "生活/旅行/云南.md", "听雨"),
        ("高原反应要注意什么？", "生活/旅行/云南.md", "香格里拉海拔高"),
        ("为什么不用 RabbitMQ 了？", "工作/项目/凤凰.md", "换成了 Kafka"),
        ("查生产数据的权限找谁开？", "工作/项目/凤凰.md", "只读账号"),
        ("什么时间可以上线？", "工作/项目/凤凰.md", "上线窗口"),
        ("压力测试为什么失败？", "工作/会议/二月评审.md", "瓶颈是数据库连接数"),
        ("深色主题什么时候做？", "工作/会议/二月评审.md", "深色模式"),
        ("合同要提前多久交给法务？", "工作/同事.md", "法务林姐"),
        ("小唐几点下班？", "工作/同事.md", "四点半要接孩子"),
        ("日语考试什么时候报名？", "学习/日语.md", "报名在三月底截止"),
        ("这本书是跟谁借的？", "学习/读书/人类简史.md", "借自朋友大刘"),
        ("外公以前是做什么工作的？", "家人/外公.md", "电焊工"),
    )
)

#: Files that are not notes. A search must not find them.
HIDDEN = {
    ".obsidian/app.json": "{}",
    ".obsidian/plugins/calendar/README.md": "# Calendar\n\nReleases go out on Mondays.\n",
    ".trash/Heating.md": "# Heating\n\nThe boiler is an old Junkers.\n",
    "node_modules/left-pad/README.md": "# left-pad\n\nString left pad.\n",
}


def write_vault(root: Path, *, days: int = 60) -> tuple[Question, ...]:
    """Write the vault and return the questions. Every answer is one line of its note."""
    chance = random.Random(11)
    files = {**NOTES, **HIDDEN}
    for number in range(days):
        day = FIRST_DAY + timedelta(days=number)
        lines = [f"- {line}" for line in everyday(chance, "zh" if number % 2 else "en")]
        files[f"Daily/{day:%Y/%m}/{day.isoformat()}.md"] = "\n".join([f"# {day.isoformat()}", "", *lines, ""])
    for path, text in files.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return QUESTIONS
