#include "storage/chat_template/chat_template.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "storage/chat_template/json_value.h"
#include "storage/chat_template/value_text.h"
#include "tests/storage/temp_dir.h"

namespace troupe::chat {
namespace {

Value Golden(const std::string& name) {
  const auto value = ParseJson(ReadText("tests/oracle/chat/" + name));
  EXPECT_TRUE(value.ok()) << value.status();
  return value.ok() ? *value : Value::OfDict(Dict());
}

const Value& At(const Value& value, const std::string& key) {
  static const Value* const none = new Value();
  const Value* const found = value.dict().Find(key);
  return found == nullptr ? *none : *found;
}

absl::StatusOr<RenderedChat> RenderText(const std::string& source,
                                        const Dict& variables,
                                        const RenderLimits& limits = {}) {
  auto chat = ChatTemplate::Parse(source);
  if (!chat.ok()) return chat.status();
  return chat->Render(variables, limits);
}

// Text and places, or an error where the golden has one.
void ExpectAsGolden(const absl::StatusOr<RenderedChat>& chat,
                    const Value& golden) {
  if (At(golden, "error").is_defined()) {
    ASSERT_FALSE(chat.ok()) << chat->text;
    EXPECT_TRUE(absl::IsInvalidArgument(chat.status())) << chat.status();
    EXPECT_EQ(chat.status().message().substr(0, 5), "line ")
        << chat.status().message();
    return;
  }
  ASSERT_TRUE(chat.ok()) << chat.status();
  EXPECT_EQ(chat->text, At(golden, "text").text());
  const List& ranges = At(golden, "generated").items();
  ASSERT_EQ(chat->generated.size(), ranges.size());
  for (size_t i = 0; i < ranges.size(); ++i) {
    EXPECT_EQ(chat->generated[i].begin, ranges[i].items()[0].integer());
    EXPECT_EQ(chat->generated[i].end, ranges[i].items()[1].integer());
  }
}

TEST(ChatTemplate, WritesConversationsAsTransformersDoes) {
  const Value golden = Golden("templates.json");
  const List& cases = At(golden, "cases").items();
  EXPECT_GE(cases.size(), 190u);
  for (const Value& one : cases) {
    const std::string& name = At(one, "template").text();
    const std::string& which = At(one, "conversation").text();
    SCOPED_TRACE(absl::StrCat(name, " ", which));
    const Value& conversation = At(At(golden, "conversations"), which);
    Dict variables = At(golden, "tokens").dict();
    if (At(conversation, "variables").is_defined()) {
      for (const auto& [key, value] :
           At(conversation, "variables").dict().entries()) {
        variables.Set(key, value);
      }
    }
    variables.Set("messages", At(conversation, "messages"));
    const Value& tools = At(conversation, "tools");
    variables.Set("tools", tools.is_defined() ? tools : Value::None());
    variables.Set("add_generation_prompt", At(one, "add_generation_prompt"));
    ExpectAsGolden(
        RenderText(At(At(golden, "templates"), name).text(), variables), one);
  }
}

TEST(ChatTemplate, SpeaksTheLanguage) {
  const Value golden = Golden("snippets.json");
  for (const Value& one : At(golden, "cases").items()) {
    const std::string& source = At(one, "source").text();
    SCOPED_TRACE(source);
    Dict variables = At(one, "variables").dict();
    variables.Set("messages", Value::OfList({}));
    ExpectAsGolden(RenderText(source, variables), one);
  }
}

struct Refusal {
  std::string source;
  std::vector<std::string> words;
};

TEST(ChatTemplate, RefusesByNameWithLineAndColumn) {
  const std::vector<Refusal> refusals = {
      {"a\n {% include 'x' %}", {"line 2, column 5", "'include'"}},
      {"{% extends 'x' %}", {"'extends'"}},
      {"{% call f() %}{% endcall %}", {"'call'"}},
      {"{% for a in [] recursive %}{% endfor %}", {"recursive"}},
      {"\n\n{{ 'a' | xmlattr }}", {"line 3, column 10", "'xmlattr'", "trim"}},
      {"{{ 'a' | map('nope') | list }}", {"filter"}},
      {"{{ 'a' is escaped }}", {"line 1, column 11", "'escaped'", "defined"}},
      {"{{ 'a'.zfill(3) }}", {"'zfill' of a string", "startswith"}},
      {"{{ 'a'.upper }}", {"'upper' is a method", "['upper']"}},
      {"{{ [1].append(2) }}", {"'append' of a list"}},
      {"{{ strftime_now('%d') }}", {"strftime_now", "the day"}},
      {"{{ cycler('a') }}", {"'cycler' is undefined"}},
      {"{{ '%s' % 1 }}", {"'%'", "a string"}},
      {"{{ 2 ** 3 }}", {"'**'"}},
      {"{{ f(*a) }}", {"by * and **"}},
      {"{{ x.y.z }}", {"'x' is undefined", "'y'"}},
      {"{{ (x | safe) + 'a' }}", {"'safe'", "the last one"}},
      {"{% for a in [1] %}{% macro f() %}{% endmacro %}{% endfor %}",
       {"macros within loops"}},
      {"{% set a %}{% generation %}{% endgeneration %}{% endset %}",
       {"{% generation %} within"}},
      {"{{ 9223372036854775807 + 1 }}", {"64 bits"}},
      {"{{ range(10000000) }}", {"range: more than 100000"}},
      {"{% for a in [1] %}", {"{% else %} or {% endfor %} is missing"}},
      {"{{ 1 ! 2 }}", {"line 1, column 6", "'!'"}},
      {"{{ raise_exception('No, ' ~ 1) }}",
       {"line 1, column", "refuses the conversation: No, 1"}},
  };
  for (const Refusal& refusal : refusals) {
    const auto chat = RenderText(refusal.source, Dict());
    for (const std::string& word : refusal.words) {
      EXPECT_TRUE(
          Fails(chat.status(), absl::StatusCode::kInvalidArgument, {word}))
          << refusal.source;
    }
  }
}

TEST(ChatTemplate, HostileOnesEnd) {
  const std::string nines = "[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]";
  std::string loops;
  for (int i = 0; i < 20; ++i) {
    loops += absl::StrCat("{% for a", i, " in ", nines, " %}");
  }
  loops += "{{ 1 }}";
  for (int i = 0; i < 20; ++i) loops += "{% endfor %}";
  const std::vector<std::string> endless = {
      loops,
      "{% set n = namespace(s='ab') %}{% for i in range(99) %}"
      "{% set n.s = n.s ~ n.s %}{% endfor %}",
      "{{ 'abc' * 100000000 }}",
      "{{ 'aaaa'.replace('', 'b' * 60000000) }}",
      "{% set n = namespace(l=[1]) %}{% for i in range(99) %}"
      "{% set n.l = n.l + n.l %}{% endfor %}",
      "{% for i in range(100000) %}{% for j in range(100000) %}"
      "{% endfor %}{% endfor %}",
      "{% for i in range(100000) %}{{ 'x' * 100000 }}{% endfor %}",
  };
  for (const std::string& source : endless) {
    const auto chat = RenderText(source, Dict());
    EXPECT_TRUE(absl::IsResourceExhausted(chat.status()))
        << chat.status() << " " << source.substr(0, 80);
  }
  const std::vector<std::string> deep = {
      "{{ " + std::string(100000, '(') + "1" + std::string(100000, ')') + " }}",
      "{{ " + std::string(100000, '[') + "1",
      "{{ 1" +
          [] {
            std::string sum;
            for (int i = 0; i < 100000; ++i) sum += " + 1";
            return sum;
          }() +
          " }}",
      "{{ " + std::string(100000, '-') + "1 }}",
      "{{ x" +
          [] {
            std::string path;
            for (int i = 0; i < 100000; ++i) path += ".a";
            return path;
          }() +
          " }}",
      [] {
        std::string ifs;
        for (int i = 0; i < 10000; ++i) ifs += "{% if 1 %}";
        return ifs;
      }(),
      "{% macro f(n) %}{{ f(n + 1) }}{% endmacro %}{{ f(0) }}",
      std::string(2 << 20, 'a'),
  };
  for (const std::string& source : deep) {
    const auto chat = RenderText(source, Dict());
    EXPECT_TRUE(absl::IsInvalidArgument(chat.status()))
        << chat.status() << " " << source.substr(0, 40);
  }
}

// Each would take hours or exhaust the memory, and is refused at once.
TEST(ChatTemplate, WhatTakesTimeOrMemorySpendsSteps) {
  const std::string shared =
      "{% set n = namespace(a=[], b=[]) %}{% for i in range(60) %}"
      "{% set n.a = [n.a, n.a] %}{% set n.b = [n.b, n.b] %}{% endfor %}";
  const std::string dicts =
      "{% set n = namespace(a={}, b={}) %}{% for i in range(60) %}"
      "{% set n.a = {'x': n.a, 'y': n.a} %}"
      "{% set n.b = {'x': n.b, 'y': n.b} %}{% endfor %}";
  const std::string long_text = "{% set t = 'a' * 1048576 %}";
  const auto often = [&](const std::string& expression) {
    return absl::StrCat(long_text,
                        "{% for i in range(1000) %}{% set x = ", expression,
                        " %}{% endfor %}");
  };
  const std::vector<std::string> sources = {
      shared + "{{ n.a == n.b }}",
      shared + "{{ n.a != n.b }}",
      shared + "{{ n.a is eq n.b }}",
      shared + "{{ n.a in [n.b] }}",
      shared + "{{ [n.a].index(n.b) }}",
      shared + "{{ n.a }}",
      shared + "{{ n.a ~ '' }}",
      shared + "{{ n.a | string | length }}",
      shared + "{{ n.a | tojson }}",
      shared + "{{ n.a | tojson(indent=2) }}",
      dicts + "{{ n.a == n.b }}",
      dicts + "{{ n.a }}",
      dicts + "{{ n.a | tojson }}",
      "{{ [1, 2, 3] | tojson(indent='a' * 3000000) }}",
      long_text + "{{ t.split('a') | length }}",
      long_text + "{{ t.rsplit('a') | length }}",
      "{{ ('a ' * 500000).split() | length }}",
      "{{ ('\\n' * 1048576).splitlines() | length }}",
      "{{ ('\\n' * 1000000) | indent }}",
      long_text + "{{ t[::-1] }}",
      long_text + "{{ t | list }}",
      long_text + "{{ t.title() }}",
      long_text + "{{ t | title }}",
      long_text + "{{ t.find('a' * 65536 ~ 'b') }}",
      long_text + "{{ t.count('a' * 65536 ~ 'b') }}",
      long_text + "{{ ('a' * 65536 ~ 'b') in t }}",
      long_text + "{{ t.strip('bcdefghijklma') }}",
      often("t.find('b')"),
      often("t.count('b')"),
      often("t.count('')"),
      often("t | length"),
      often("t.strip()"),
      often("t | trim"),
      often("t.startswith(t)"),
      often("t == t ~ ''"),
      often("t < t"),
      often("t | int"),
      often("t[0]"),
      often("t[:1]"),
      often("{t: 1}.get(t)"),
      often("{t: 1} | list"),
      often("{t: 1} | items"),
  };
  // All of them would be within these limits if only expressions spent steps.
  const RenderLimits limits = {.steps = 200'000, .text_bytes = 4 << 20};
  for (const std::string& source : sources) {
    const absl::Status status = RenderText(source, Dict(), limits).status();
    EXPECT_TRUE(absl::IsResourceExhausted(status)) << status << " " << source;
  }
}

// A long conversation is no hostile one.
TEST(ChatTemplate, LongMessagesAreWithinTheLimits) {
  std::string content;
  for (int i = 0; i < 20000; ++i) absl::StrAppend(&content, "line ", i, "\n");
  Dict variables;
  variables.Set("content", Value::Text(content));
  const auto chat = RenderText(
      "{%- for i in range(20) -%}"
      "{{ content.strip() | length }} {{ content.split('\\n') | length }} "
      "{{ content.find('line 9') }} {{ content[5:9] }} {{ content[-2] }} "
      "{{ 'line 19999' in content }}{{ content.startswith('line') }}"
      "{{ content.replace('line ', '') == content }}|{% endfor %}",
      variables);
  ASSERT_TRUE(chat.ok()) << chat.status();
  const std::string once =
      absl::StrCat(content.size() - 1, " 20001 63 0\nli 9 TrueTrueFalse|");
  EXPECT_EQ(chat->text.substr(0, once.size()), once);
  EXPECT_EQ(chat->text.size(), 20 * once.size());
}

// What goes through a value, or frees it, calls itself for each level.
TEST(ChatTemplate, RefusesValuesThatNestTooDeep) {
  const std::vector<std::string> grown = {
      "[n.a]",
      "(n.a,)",
      "{'k': n.a}",
      "dict(k=n.a)",
      "[] + [n.a]",
      "{'k': n.a} | items | list",
      "{'k': n.a}.values() | list",
      "[{'k': n.a}] | map('dictsort') | list",
      "[[n.a]][:1]"};
  for (const std::string& value : grown) {
    const auto times = [&](int count) {
      return RenderText(
          absl::StrCat("{% set n = namespace(a=[]) %}{% for i in range(", count,
                       ") %}{% set n.a = ", value, " %}{% endfor %}"),
          Dict());
    };
    EXPECT_TRUE(times(40).ok()) << value << ": " << times(40).status();
    EXPECT_TRUE(Fails(times(90000).status(), absl::StatusCode::kInvalidArgument,
                      {"line 1, column", "values nest deeper than 200"}))
        << value;
  }
  EXPECT_TRUE(
      Fails(RenderText("{% set n = namespace(a=1) %}{% for i in range(90000) %}"
                       "{% for j in [n.a, 1] %}{% set n.a = loop %}{% endfor %}"
                       "{% endfor %}",
                       Dict())
                .status(),
            absl::StatusCode::kInvalidArgument, {"deeper than 200"}));
  std::string maps = "{{ 'a' | map('map'";
  for (int i = 0; i < 15000; ++i) maps += ",'map'";
  EXPECT_TRUE(Fails(RenderText(maps + ") | list }}", Dict()).status(),
                    absl::StatusCode::kInvalidArgument,
                    {"'map' within 'map'"}));
}

TEST(ChatTemplate, LimitsAreTheCallers) {
  const std::string source = "{% for i in range(1000) %}0123456789{% endfor %}";
  EXPECT_EQ(RenderText(source, Dict())->text.size(), 10000u);
  EXPECT_TRUE(absl::IsResourceExhausted(
      RenderText(source, Dict(), {.steps = 500}).status()));
  EXPECT_TRUE(Fails(RenderText(source, Dict(), {.text_bytes = 9999}).status(),
                    absl::StatusCode::kResourceExhausted,
                    {"line 1, column", "a text"}));
}

TEST(ChatTemplate, KnowsWhatItReads) {
  const auto chat = ChatTemplate::Parse(
      "bos_token {{ eos_token }}{%- generation -%}{% endgeneration %}");
  ASSERT_TRUE(chat.ok()) << chat.status();
  EXPECT_TRUE(chat->marks_generation());
  EXPECT_TRUE(chat->Reads("eos_token"));
  EXPECT_FALSE(chat->Reads("bos_token"));
  EXPECT_FALSE(ChatTemplate::Parse("{{ generation }}")->marks_generation());
}

TEST(JsonValue, ReadsWhatPythonReads) {
  const auto value = ParseJson(R"({"a": 1, "b": [1.5, null, true], "a": "é"})");
  ASSERT_TRUE(value.ok()) << value.status();
  Budget budget(100, 100);
  EXPECT_EQ(TextOf(*value, budget).value(),
            "{'a': 'é', 'b': [1.5, None, True]}");
  EXPECT_TRUE(Fails(ParseJson("{\"a\": }").status(),
                    absl::StatusCode::kInvalidArgument, {"byte 7"}));
  EXPECT_TRUE(Fails(ParseJson("[\"\xff\"]").status(),
                    absl::StatusCode::kInvalidArgument, {"UTF-8"}));
  for (const std::string& number :
       {std::string("9223372036854775808"), std::string(30, '9'),
        "-" + std::string(30, '9')}) {
    EXPECT_TRUE(Fails(ParseJson(number).status(),
                      absl::StatusCode::kInvalidArgument, {"64 bits"}))
        << number;
  }
  EXPECT_TRUE(Fails(ParseJson(std::string(100000, '[')).status(),
                    absl::StatusCode::kInvalidArgument, {"levels"}));
}

}  // namespace
}  // namespace troupe::chat
