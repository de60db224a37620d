"""Sixty questions about one's own life, in two languages, and the statements that answer them.

Each statement is asked for once in English and once in Chinese. The words of a question are those in which people ask,
not those of the statement.
"""

from __future__ import annotations

#: A statement, a question in English, a question in Chinese.
LIFE: tuple[tuple[str, str, str], ...] = (
    ("I moved to Munich last month", "where do I live?", "我现在住在哪里？"),
    ("I am allergic to penicillin", "what am I allergic to?", "我对什么过敏？"),
    ("My daughter Lina was born on 4 June 2019", "how old is my daughter?", "我女儿的生日是哪天？"),
    ("I work as a nurse at the Charité", "what is my job?", "我是做什么工作的？"),
    ("我喜欢喝普洱茶，不喝咖啡", "what do I like to drink?", "我平时喝什么？"),
    ("My wife's name is Elena", "what is my wife called?", "我妻子叫什么名字？"),
    ("I drive a grey Skoda Octavia", "which car do I have?", "我开什么车？"),
    ("Our cat Miso eats only wet food", "what is the name of my cat?", "我家的猫叫什么？"),
    ("我每天早上六点半起床", "when do I get up?", "我几点起床？"),
    ("I play the cello in an amateur orchestra", "which instrument do I play?", "我会什么乐器？"),
    ("My dentist is Dr. Okafor in Lindenstraße", "who is my dentist?", "我的牙医是谁？"),
    ("I am vegetarian", "do I eat meat?", "我吃肉吗？"),
    ("我的老家在成都", "where am I from?", "我是哪里人？"),
    ("My blood type is 0 negative", "what is my blood type?", "我是什么血型？"),
    ("I wear shoes in size 42", "what is my shoe size?", "我穿多大的鞋？"),
    ("My manager is called Priya", "who is my boss?", "我的上司是谁？"),
    ("I pay 1,350 euros rent a month", "how much is my rent?", "我的房租是多少？"),
    ("My birthday is 3 May", "when is my birthday?", "我什么时候过生日？"),
    ("我在学日语，准备考N2", "which language am I learning?", "我在学什么外语？"),
    ("I run ten kilometres every Sunday", "what sport do I do?", "我做什么运动？"),
    (
        "My son goes to the Waldorf school in Haidhausen",
        "which school does my son go to?",
        "我儿子在哪里上学？",
    ),
    ("My passport expires in March 2029", "how long is my passport valid?", "我的护照什么时候到期？"),
    ("I take 5 mg of ramipril every morning", "which medicine do I take?", "我吃什么药？"),
    ("I grew up in Glasgow", "where did I spend my childhood?", "我小时候在哪里长大？"),
    ("I studied physics in Edinburgh", "what did I study at university?", "我大学学的是什么专业？"),
    ("我妈妈住在上海", "where does my mother live?", "我妈妈住在哪里？"),
    ("I am afraid of flying", "what am I afraid of?", "我害怕什么？"),
    (
        "My bike is locked in the cellar, code 4711",
        "what is the code of my bike lock?",
        "我的自行车锁密码是多少？",
    ),
    ("I bank with ING", "which bank do I use?", "我的银行是哪家？"),
    ("I prefer window seats on trains", "do I want a window or an aisle seat?", "我坐火车喜欢坐哪里？"),
)

#: Questions about the same life that no statement answers.
UNKNOWN: tuple[str, ...] = (
    "what is the password of my Netflix account?",
    "how tall am I?",
    "when did I get married?",
    "who is my lawyer?",
    "what is my favourite film?",
    "我的车牌号是多少？",
    "我的手机号码是多少？",
    "我戴多少度的眼镜？",
    "我哥哥在哪里工作？",
    "我最喜欢的电影是什么？",
)
