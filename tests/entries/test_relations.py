"""How two statements relate: pairs that differ in one word, one role, one denial or one phrase."""

from __future__ import annotations

import pytest

from memoriter.entries.relation import MAX_WORDS, Relation, contradicts, relation

PAIRS = [
    ("The domain expires in June", "The domain fern.garden expires in June", "different"),
    ("I prefer tabs", "I prefer spaces over tabs", "contradiction"),
    ("订单服务使用 PostgreSQL", "订单服务使用 PostgreSQL 16", "refinement"),
    ("不要直接给客户发邮件", "不要直接给客户发邮件，要通过玛丽亚", "different"),
    ("我每天早上喝咖啡", "我早上不再喝咖啡了", "contradiction"),
    ("我下象棋", "我几乎每晚都在网上下象棋", "refinement"),
    ("我下午不喝咖啡", "我喝咖啡", "different"),
    ("渡轮可以带汽车和自行车", "渡轮可以带自行车和汽车", "same"),
    ("Our landlord is Mr. Okafor", "Mr. Okafor is our landlord", "same"),
    ("The bus stops at the school", "The bus does not stop at the mill", "different"),
    ("博物馆免费", "博物馆每月第一个周日免费", "refinement"),
    ("雷船长是我舅舅", "我舅舅是雷船长", "same"),
    ("Only before noon do I drink coffee", "I drink coffee only before noon", "same"),
    ("We use PostgreSQL 16 for the orders service", "We use PostgreSQL for the orders service", "part"),
    ("I speak German fluently, at level C1", "I speak German", "part"),
    ("I prefer tabs over spaces", "I prefer tabs", "part"),
    ("We heat with oil, not with gas", "We heat with gas, not with oil", "contradiction"),
    ("I now write with a ballpoint instead of a fountain pen", "I write with a fountain pen", "contradiction"),
    ("Our guests are the Smiths", "The Smiths are our guests", "same"),
    ("Our landlord was Omar", "Omar was our landlord", "same"),
    ("Our landlords were the Smiths", "The Smiths were our landlords", "same"),
    ("我的猫叫咪咪", "咪咪叫我的猫", "same"),
    ("I lived in Paris", "I live in Paris", "different"),
    ("On Monday Omar calls Yusuf", "On Monday Yusuf calls Omar", "different"),
    ("Tom is my brother", "My brother Tom", "different"),
    ("I prefer tea", "I prefer coffee rather than tea", "contradiction"),
    ("我喜欢茶", "我喜欢咖啡胜过茶", "contradiction"),
    ("我喝茶", "我喝咖啡不是茶", "contradiction"),
    ("I drink coffee", "I rarely drink coffee", "different"),
    ("我很少喝咖啡", "我喝咖啡", "different"),
    ("I eat meat", "I eat meat just at Christmas", "different"),
    ("我吃肉", "我吃肉，只在节日", "different"),
    ("我吃肉", "我吃肉，仅在节日", "different"),
    ("I eat meat", "I eat only on Sundays meat", "different"),
    ("I like tea", "I'd like tea", "different"),
    ("I'd like tea", "I like tea", "different"),
    ("I work at Acme", "I will work at Acme", "different"),
    ("I'll work at Acme", "I work at Acme", "different"),
    ("I work at Acme", "I'll work at Acme from May", "different"),
    ("I'll work at Acme from May", "I work at Acme", "different"),
    ("I drink coffee", "I would not drink coffee", "different"),
    ("We use MySQL", "We would use Postgres instead of MySQL", "different"),
    ("We would use MySQL", "We use Postgres instead of MySQL", "contradiction"),
    ("We will use Redis", "We will use Redis in May", "refinement"),
    ("", "We deploy", "different"),
    ("我喝", "我喝再睡", "different"),
    ("先写测试", "先写测试再写代码", "refinement"),
    ("I use 数据库", "I use 数据库 daily", "different"),
    ("We paint the fence", "In May we paint the fence", "different"),
    ("We pay 3 invoices", "We pay 3 4 invoices", "different"),
    ("I never don't drink coffee", "I don't drink coffee", "contradiction"),
    ("I drink coffee and not tea", "I don't drink coffee, not tea", "different"),
    ("I smoke", "I don't smoke", "contradiction"),
    ("我喝咖啡很多", "我不喝咖啡", "different"),
    ("I drink coffee in the morning", "I don't drink coffee", "contradiction"),
    ("Anna and her manages Bob", "Bob and her manages Anna", "different"),
    ("I drink coffee", "My sister doesn't drink coffee", "different"),
    ("The staging server runs in Frankfurt", "Our staging server is running in Frankfurt", "same"),
    ("Our staging server is running in Frankfurt", "The staging server runs in Frankfurt", "same"),
    ("用户偏好 TypeScript", "用户偏好使用 TypeScript 进行前端开发", "refinement"),
    ("用户偏好 TypeScript", "喜欢用 TS 写前端", "refinement"),
    ("用户偏好使用 TypeScript 进行前端开发", "喜欢用 TS 写前端", "same"),
    ("用户偏好 TypeScript", "他喜欢用 TS 写前端", "different"),
    ("用户偏好 Rust", "用户偏好使用 Rust 编写后端服务", "refinement"),
    ("用户偏好 JavaScript", "喜欢用 JS 写网页", "refinement"),
    ("用户使用 Vim", "用户使用 Vim 编辑所有配置文件", "refinement"),
    ("用户偏好 PyInstaller", "用户偏好使用 PyInstaller 打包应用", "refinement"),
    ("我用 Excel", "我用 Excel 整理家庭账单", "refinement"),
    ("我喜欢 Blender", "我喜欢用 Blender 建模", "refinement"),
    ("我喜欢 Anki", "我喜欢用 Anki 背单词", "refinement"),
    ("我用 Python", "我用 Python 计算工资", "refinement"),
    ("我用 Vim", "我用 Vim 编辑器", "different"),
    ("我用 Sony", "我用 Sony 录音笔", "different"),
    ("我用 Postman", "我用 Postman 测试工具", "different"),
    ("我用 Google", "我用 Google 搜索引擎", "different"),
    ("我用 Obsidian", "我用 Obsidian 来记读书笔记", "refinement"),
    ("用户使用 Vim", "用户使用 Vim 插件", "different"),
    ("用户使用 Docker", "用户使用 Docker 管理平台", "different"),
    ("我在学 Rust", "我在学 Rust 写的项目", "different"),
    ("我不用 Rust", "我不用 Rust 写前端", "different"),
    ("I don't drink coffee", "I don't drink coffee after noon", "different"),
    ("I don't drink coffee after noon", "I don't drink coffee", "different"),
    ("I don't drink coffee", "I don't drink coffee, it keeps me awake", "refinement"),
    ("喜欢用 TS 写前端", "喜欢用 TS 写后端", "different"),
    ("We deploy to k8s", "We deploy to Kubernetes on Fridays", "refinement"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "kind"), PAIRS)
def test_words_decide_how_statements_relate(old: str, new: str, kind: str) -> None:
    assert relation(old, new, None).kind == kind


def test_a_cosine_that_is_too_small_makes_statements_different() -> None:
    short, long = "We deploy on Tuesdays", "We deploy on Tuesdays after the stand-up"
    assert [relation(short, long, cosine).kind for cosine in (0.59, 0.6)] == ["different", "refinement"]
    yes, no = "I drink coffee", "I don't drink coffee"
    assert [relation(yes, no, cosine).kind for cosine in (0.49, 0.5)] == ["different", "contradiction"]


def test_a_text_is_not_compared_word_by_word() -> None:
    def words(number: int, last: str) -> str:
        return " ".join([*(f"word{place}x" for place in range(number - 1)), last])

    too_long = Relation("different", "too long to compare")
    assert relation(words(MAX_WORDS + 1, "gas"), words(MAX_WORDS + 1, "oil"), None) == too_long
    assert relation(words(MAX_WORDS, "gas"), words(MAX_WORDS, "oil"), None) != too_long
    assert MAX_WORDS == 300


def test_the_reason_says_what_was_compared() -> None:
    assert relation("I like tea.", "i like TEA", None) == Relation(
        "same", "equal except for case, spacing and punctuation"
    )
    assert relation("Omar hired Yusuf", "Yusuf hired Omar", None) == Relation(
        "different", "the same words in other roles"
    )
    assert relation("I lived in Paris", "I live in Paris", None) == Relation(
        "different", "the same words about another person, place or time"
    )


def test_statements_about_two_people_are_different() -> None:
    assert relation("I sing alto", "My sister sings alto", None).kind == "different"


def test_only_a_contradiction_contradicts() -> None:
    assert contradicts("I live in Paris", "I moved to Berlin") is True
    assert contradicts("I like tea", "I like tea") is False


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("The billing service moved to Go", "The search service moved to Go"),
        ("小王搬到了上海", "小李搬到了上海"),
    ],
)
def test_the_same_change_of_another_thing_ends_nothing(old: str, new: str) -> None:
    assert relation(old, new, 0.9).kind == "different"


def test_a_second_change_of_the_same_thing_ends_the_first() -> None:
    assert (
        relation("The billing service moved to Go", "The billing service moved to Rust", 0.9).kind
        == "contradiction"
    )
