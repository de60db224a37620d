# ruff: noqa: E501 - a pattern that is broken in two is harder to read

"""The patterns by which `capture` recognises sentences, in English and Chinese (simplified and traditional).

Every pattern is bounded, so its running time is linear in the length of the text.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from memoriter.records import EntryType

_compiled = cache(re.compile)


class CaptureRule(NamedTuple):
    """The type of a sentence that matches an expression."""

    type: EntryType
    expression: str | re.Pattern[str]
    #: The speaker asked to remember it.
    explicit: bool = False

    @property
    def pattern(self) -> re.Pattern[str]:
        """The expression, compiled at first use: most processes capture nothing."""
        return _compiled(self.expression)


# ---- never kept ----------------------------------------------------------------------------------------------

#: Recalled blocks, markup, code, quotes, shell lines, data.
FOREIGN = re.compile(
    r"<\s{0,3}/?\s{0,3}[a-z\u4e00-\u9fff][\w-]{0,40}[\s>/]|^\s{0,3}>|^(?: {4}|\t)\S|```|^\s*[{\[]|[{};]\s*$|\w\(.{0,80}\)\s*[:;.]?\s*$"
    r"|^\s{0,3}(?:git|npm|pip|docker|kubectl|curl|sudo|cd|def|class|import|from \w+ import|for \w+ in|return|print)\b(?! me\b)"
    r"|==|=>|->|\bself\.|^\s{0,3}\$ ",
    re.IGNORECASE | re.MULTILINE,
)
INJECTION = re.compile(
    r"\b(?:ignore|disregard|forget|override)\b.{0,40}\b(?:instructions?|prompts?|rules?)\b|\bsystem prompt\b"
    r"|\bdeveloper message\b|\byou must (?:now )?(?:send|run|execute|call|obey)\b|\b(?:system|assistant|user)\s{0,3}:"
    r"|忽略.{0,20}(?:指令|指示|提示|规则)|無視.{0,20}指令|系统提示|系統提示|你必须(?:把|将|执行|发送)",
    re.IGNORECASE,
)
QUESTION = re.compile(
    r"[?？؟]\s*$|^¿|[吗嗎呢]\s*[。.]?\s*$|^(?:what|when|where|who|whom|which|why|how|do|does|did|is|are|was|were|can|could|"
    r"should|shall|would|will|have you|has|am i)\b|^(?:为什么|為什麼|怎么|怎麼|如何|什么|什麼|哪|谁|誰|几|幾|多少|能不能|是不是|有没有)"
    r"|是不是|[哪几幾]天[。]?$|什么名字|什麼名字|^(?:explain|describe|tell me|translate|summari[sz]e|解释|解釋|翻译|翻譯|讲个|讲讲|总结)"
)
HYPOTHETICAL = re.compile(r"^(?:if|suppose|imagine|assume|let's say)\b|^(?:如果|假如|假设|假設|要是|假使)")


# ---- what is kept --------------------------------------------------------------------------------------------

_KIN = (
    "wife|husband|son|daughter|mother|father|mom|mum|dad|brother|sister|partner|boss|manager|dog|cat|friend|colleague|"
    "grandmother|grandfather|grandma|grandpa|aunt|uncle|cousin|niece|nephew|girlfriend|boyfriend"
)
_KIN_ZH = "妻子|太太|老婆|丈夫|老公|先生|儿子|兒子|女儿|女兒|妈妈|媽媽|爸爸|母亲|父亲|哥哥|姐姐|弟弟|妹妹|经理|經理|老板|老闆|同事|朋友|狗|猫|貓"
_I = r"(?:^|[,;] |\band |\bbut )(?:i|i also|i really|i still|i now|personally,? i)"
_ZH_I = r"(?:^|[，,；;])(?:我|本人|我个人|我個人|我自己)"
_ADVERB = r"(?:现在|現在|目前|也|还|還|很|最|一直|真的|都|一般|通常|平时|平時|平常|上个月|上個月|去年|今年|已经|已經){0,3}"

#: The request to remember what was just said, at the end of a sentence. "…, remember?" and "…, I remember" are none.
ASKED_LAST = re.compile(
    r"[,;–—-] ?(?:(?:so|and) )?(?:please (?:remember|don'?t forget)|(?:please )?(?:remember|note|keep in mind|don'?t forget)"
    r" (?:it|that|this))(?:,? please)?(?=\s*[.!]*\s*$)"
    r"|[，,；;\s](?:请|請|帮我|幫我|你要|要)?(?:记住|記住|记下|記下|记得|記得|记一下|記一下|别忘了|別忘了)(?:它|这个|這個|这点|這點|来|來|了|哦|啊|吧){0,2}(?=\s*[。！!.]*\s*$)",
    re.IGNORECASE,
)

#: The request to remember what follows a colon, in the words that people use for it. "Save this mail: …" is none.
ASKED_FIRST = re.compile(
    r"^(?:[^:.!?\n]{0,25}[ ,])?(?:note to self|(?:remember|note|save|store|memori[sz]e|write|jot|put|keep|log|add)(?: (?:this|that|it|the following|one thing))?"
    r"(?: (?:down|away|for (?:later|me|next time)|please|somewhere|(?:in|to) (?:your|my|the) (?:memory|notes)))*)(?:,? (?:and )?(?:please )?(?:save|remember|keep|store|note) (?:it|this|that))?(?:,? please)?:\s"
    r"|^(?:can|could|would|will) you (?:please )?(?:remember|note|keep in mind|save|store) that (?=(?:i|i'?m|i'?ve|my|we|we'?re|our|the|he|his|she|her|they|their|there|every)\b)",
    re.IGNORECASE,
)

#: A request about a text, and what the person says about themselves as its reason.
REASON = re.compile(
    r"(?=[^,]{0,100}\b(?:this|these|below|following)\b)[^,:;\"“”'’]{4,100},\s(?:because |since |as )?(?P<own>(?:I|I['’]m|I['’]ve|my|we|we['’]re|our)\b[^:\"“”]{8,200})\Z",
    re.IGNORECASE,
)

RULES: tuple[CaptureRule, ...] = (
    # the speaker asks to remember it
    CaptureRule(
        "fact",
        r"^(?:please |and |also,? )?(?:remember|note|keep in mind|bear in mind|don'?t forget)(?: that|:|,)\s"
        r"|^(?:please )?remember (?:my|our|i|we)\b|^(?:for future reference|fyi|for the record|memo|you should know that|just so you know)\b",
        explicit=True,
    ),
    CaptureRule("fact", ASKED_FIRST, explicit=True),
    CaptureRule(
        "fact",
        r"^(?:请|請|帮我|幫我|你要|要)?(?:记住|記住|记下|記下|记得|記得|记一下|記一下|备忘|備忘|牢记|牢記)[:：，,\s]?"
        r"(?!你|刚|剛)(?!.{0,6}(?:吗|嗎))|^(?:别忘了|別忘了|不要忘了|不要忘记|不要忘記)(?=我|我们|我們)",
        explicit=True,
    ),
    CaptureRule("fact", ASKED_LAST, explicit=True),
    # what the speaker calls important
    CaptureRule("fact", r"^(?:this is |very |also )?important(?: note)?[:,] "),
    CaptureRule("workflow", r"^(?:最|很|非常)?重要的(?:是|一点是)[：:，,]?(?!什么|什麼|哪|谁)"),
    # rules
    CaptureRule(
        "workflow",
        r"^(?:please )?(?:always|never)\s(?!mind|getting|got|happens|works|again|(?:the|a|an|in|on|been)\b)[a-z]"
        r"|\bfrom now on\b|\bin (?:the )?future,|^(?:we|our team) (?:always|never|must)\b"
        r"|^(?:the|our|all|every) .{2,60}\b(?:always|never|must)\b",
    ),
    CaptureRule(
        "workflow",
        r"^(?:请|請)?(?:你)?(?:以后|以後|今后|今後|从现在起|從現在起|从今以后)(?:都|就|请|請|要|不要|所有|每|一律|，)"
        r"|^(?:请|請)(?:一直|总是|總是|永远|永遠|始终|始終|务必|務必)|^(?:永远|永遠|始终|始終|总是|總是)(?:要|不要|别|別|不能|不许|用|使用|先|把|保持)"
        r"|^(?:我|我们|我們|大家|团队|團隊)(?:总是|總是|始终|始終|永远|永遠)(?!.{0,12}(?:错|錯|失败|失敗|不了|不动|坏|忘|记不|記不|这个|這個))|(?:绝对|絕對|一律|坚决)(?:不要|不能|不许|要)|(?:千万|千萬)(?:别|別|不要)"
        r"|(?:必须|必須|一定要|都要求|要求).{0,20}(?:每|所有|都)|规范要求|規範要求|这是我们的规定|這是我們的規定"
        r"|(?:环境|服务器|伺服器|部署|发布|上线).{0,10}(?:一直|总是|總是|永远|从不)",
    ),
    # likes and dislikes
    CaptureRule(
        "user_preference",
        rf"{_I} (?:like|love|hate|prefer|enjoy|dislike|don'?t like|do not like|can'?t stand|adore)\s"
        r"(?!it\b|that\b|this\b|these\b|those\b|you\b|how you\b|the idea|what\b|your\b|them\b)[a-z]"
        r"|\bmy (?:favou?rite|preferred)\b.{1,60}\bis\b|^.{2,60} (?:is|are) my (?:favou?rite|preferred)\b|^i(?:'d| would) (?:always )?prefer\b",
    ),
    CaptureRule(
        "user_preference",
        rf"{_ZH_I}{_ADVERB}(?:喜欢|喜歡|偏好|讨厌|討厭|爱|愛|不喜欢|不喜歡|不爱|不愛|更喜欢|习惯|習慣|受不了|反感)"
        r"(?!这|這|那|你|它|吗|嗎|[！!。]|$)|^我.{2,20}(?:更喜欢|更喜歡|更习惯)|我最(?:喜欢|喜歡|爱|愛)的.{1,20}是|我的偏好",
    ),
    CaptureRule(
        "user_preference",
        rf"{_I} (?:no longer|never|always|usually|don'?t|do not|only) (?:eat|drink|use|take|work|start|write|wear|smoke|fly|buy)\b"
        rf"|{_I} take my\b|{_I} (?:want|need) (?:all|every)\b|^call me [a-z]|^i go by [a-z]"
        r"|^the (?:client|customer|boss|team|manager) (?:prefers?|likes?|hates?|expects?|wants?|insists?)\b",
    ),
    CaptureRule(
        "user_preference",
        rf"{_ZH_I}{_ADVERB}(?:不再|从不|從不|从来不|總是|总是|只)(?:吃|喝|用|坐|抽|穿|买|買|写|寫)|我(?:喝|吃).{{1,8}}从不|我(?:喝|吃).{{1,8}}從不"
        rf"|(?:大家|朋友|同事|家人).{{0,2}}叫我|^(?:我们|我們)(?:从不|從不|总是|總是|一律|都不)|(?:^|，)(?:请|請)?叫我.{{1,10}}(?:就行|就好|吧)|{_ZH_I}{_ADVERB}.{{1,6}}(?:上班|起床|睡觉|睡覺)(?!了吗)",
    ),
    # decisions and means
    CaptureRule(
        "technical_decision",
        r"^we(?:'ll| will) (?:use|go with|adopt|switch to|migrate to|standardi[sz]e on) (?!it\b|this\b|that\b)"
        r"|^(?:so )?we(?:'ve| have)? (?:decided|agreed|chose|settled on|switched|migrated|standardi[sz]ed|picked|went with)\b"
        r"|^let'?s (?:go with|stick with|settle on|standardi[sz]e on) (?!it\b|that\b|this\b|option\b|the (?:first|second|third|last|other)\b|your\b|plan\b)"
        r"|^(?:the )?decision(?: is|:)|^we(?:'re| are) (?:going with|moving to)\b",
    ),
    CaptureRule(
        "technical_decision",
        r"(?:我们|我們|咱们|团队|團隊|大家)?(?:已经|已經|最后|最後)?(?:(?<!我)决定|(?<!我)決定|我决定.{0,6}(?:用|把|以后|都)|说好了|說好了|商定|选定|選定|约定|約定)(?!了?吗|日期|[？?])"
        r"|^(?:我们|我們).{0,10}从.{1,15}(?:换到|換到|换成|迁移到|遷移到|改到|转到)|^(?:我们|我們|项目|專案|.{2,8}服务).{0,6}(?:改用|改成|不再用)",
    ),
    CaptureRule(
        "project_context",
        r"^(?:we|our (?:team|company|project)) (?:use|uses|deploy|run|runs|build|ship|host|have)\b(?! to\b)"
        r"|^our [a-z -]{2,40} (?:is|are|runs?|lives?|requires?|uses?|consists?)\b(?! (?:broken|failing|slow|down|wrong))"
        r"|^the (?:deadline|budget|project|customer|client|company|release|staging|production|office|team)\b.{0,60}\b(?:is|are|pays?|wants?|runs?)\b"
        r"(?! (?:broken|failing|slow|down|wrong))",
    ),
    CaptureRule(
        "project_context",
        r"^(?:我们|我們|咱们)(?:团队|團隊|公司|项目|專案)?(?:目前|现在|都|一直)?(?:用|使用|采用|採用|部署在)(?!.{0,20}还是)"
        r"|^(?:我们|我們)的?(?!测试|代码).{2,20}(?:是|叫|在|要求|使用|不开门|关门|大多|都是)(?!什么|多少|哪)|(?:预算|預算|截止日期|期限)是(?!什么|多少|哪)"
        r"|^(?:本|这个|這個|我们的?|我們的?)?(?:项目|專案|系统|系統|产品|團隊|团队)(?:目前|现在|都|一直)?(?:用|使用|采用|採用|基于|部署在)(?!.{0,20}(?:还是|什么|吗|失败|报错))"
        r"|^我?所在的(?:公司|团队|部门).{0,4}叫|(?:客户|客戶).{0,10}(?:付款|要求|希望)",
    ),
    # skills
    CaptureRule(
        "skill",
        r"\bi(?:'m| am) (?:fluent|proficient|experienced|good at|an expert|learning)\b|\byears of experience\b"
        r"|^i (?:speak|know) [a-z]+(?:,| and| very| well| at| with|$|\.)",
    ),
    CaptureRule(
        "skill",
        rf"{_ZH_I}{_ADVERB}(?:精通|熟悉|擅长|擅長|会说|會說|会写|會寫|在学|在學)|年.{{0,10}}(?:经验|經驗)|(?:英语|法语|德语|日语|中文|英文).{{0,8}}(?:流利|一般|熟练)",
    ),
    # what agents write about the user
    CaptureRule(
        "user_preference",
        r"^(?:the |this )?user(?:'s)? (?:(?:strongly |really |usually |always )?(?:prefers|likes|loves|hates|dislikes|enjoys|(?:doesn'?t|does not) like)\b|preferences?\b ?(?:is\b|are\b|:))"
        r"|^(?:该|此|这位)?(?:用户|用戶|使用者)的?(?:更|最|很|比较|不)?(?:偏好|喜欢|喜歡|喜爱|讨厌|討厭|习惯|習慣)(?!模块|模組|设置|設定|页|頁|表|功能|接口|数据|資料|存储|系统)",
    ),
    # who and where
    CaptureRule(
        "relationship",
        rf"^[a-z]+ reports to [a-z]|\bmy (?:{_KIN})\b(?: [a-z]+)? (?:is|are|was|has|handles?|works?|lives?|goes|likes?|does|teaches|called)\b"
        rf"|\b(?:is|are) my (?:{_KIN})\b"
        rf"|(?:^|[,;] |\band |\bbut )my (?:{_KIN})(?: [a-z]+)? (?:mov(?:ed|es) (?:to|from|in|out)|(?:starts|started) (?:school|work|university|college|nursery|kindergarten|a (?:new )?job|at)"
        r"|turn(?:s|ed) \d|got (?:married|engaged|divorced)|married|graduate[sd]|stud(?:ies|ied)|retire[sd]|was born|died|passed away|prefers|loves|hates|can'?t eat|speaks)\b",
    ),
    CaptureRule(
        "relationship",
        rf"(?:^|[，,])我(?:们|們)?的?[小大]?(?:{_KIN_ZH}).{{0,6}}(?:是|叫|在|负责|負責|喜欢|住|做|教|岁|歲|上学|毕业|結婚|结婚)(?!谁|誰|什么)"
        rf"|(?:^|[，,])我(?:们|們)?(?:的|家)?[小大]?(?:{_KIN_ZH}|妈|媽|爸|哥|姐|弟|妹|奶奶|爷爷|爺爺|外婆|外公|孩子|女朋友|男朋友).{{0,6}}"
        r"(?:[对對](?!什么|什麼|哪).{1,8}[过過]敏|搬到|搬去|开始上|開始上|要上|考上|出生|怀孕|懷孕|退休|去世|患有|不吃|不能吃)(?!哪|什么|什麼)",
    ),
    CaptureRule("fact", r"\bmy birthday\b.{0,30}\bis\b|我的?生日.{0,6}(?:是|在|：|:)(?!哪|什么|什麼|几|幾)"),
    CaptureRule(
        "relationship",
        r"\bmy (?:name|phone|number|e-?mail|address|github|twitter|handle|account|surname|nickname)\b.{0,30}\b(?:is|are)\b"
        r"|\b(?:reach|contact|call|write to|mail) me (?:at|on|under|via)\b",
    ),
    CaptureRule(
        "relationship",
        r"我(?:的|叫)(?:名字)?(?:叫|是)?.{0,14}(?:手机|手機|电话|電話|邮箱|郵箱|电子邮件|電子郵件|地址|账号|帳號|微信|名字).{0,6}(?:是|叫|：|:)(?!哪|什么|多少)"
        r"|^我叫(?!什么|什麼|你).{1,12}|[\w.+-]{1,40}@[\w-]{1,40}\.\w{1,10}.{0,8}(?:找我|联系我|聯繫我)",
    ),
)

MINE = re.compile(r"\b(?:me|my|i|mine|our|us)\b|我|本人")

STRONG = re.compile(r"\b(?:always|never)\b|我喜欢|我喜歡|我偏好")
WEIGHTY = re.compile(r"\b(?:always|never|important|must)\b|必须|必須|一定|重要|绝对|絕對")
