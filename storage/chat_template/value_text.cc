#include "storage/chat_template/value_text.h"

#include <unicode/uchar.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "proto/base/status.h"
#include "storage/chat_template/python_text.h"

namespace troupe::chat {
namespace {

absl::Status HasNoText(const Value& value) {
  return absl::InvalidArgumentError(
      absl::StrCat(value.kind_words(), " cannot be written as text"));
}

// The shortest digits that read back as the number, as Python writes them.
std::string FloatText(double number, bool json) {
  if (std::isnan(number)) return json ? "NaN" : "nan";
  if (std::isinf(number)) {
    const std::string word = json ? "Infinity" : "inf";
    return number < 0 ? "-" + word : word;
  }
  char buffer[64];
  const auto end = std::to_chars(buffer, buffer + sizeof(buffer), number,
                                 std::chars_format::scientific);
  const std::string shortest(buffer, end.ptr);
  const size_t e = shortest.find('e');
  const int exponent = std::stoi(shortest.substr(e + 1));
  if (exponent < -4 || exponent >= 16) return shortest;
  const int digits = static_cast<int>(
      std::count_if(shortest.begin(), shortest.begin() + e,
                    [](char c) { return c >= '0' && c <= '9'; }));
  return absl::StrFormat("%.*f", std::max(1, digits - 1 - exponent), number);
}

bool IsPrinted(uint32_t code) {
  if (code == ' ') return true;
  switch (u_charType(static_cast<UChar32>(code))) {
    case U_CONTROL_CHAR:
    case U_FORMAT_CHAR:
    case U_SURROGATE:
    case U_PRIVATE_USE_CHAR:
    case U_UNASSIGNED:
    case U_LINE_SEPARATOR:
    case U_PARAGRAPH_SEPARATOR:
    case U_SPACE_SEPARATOR:
      return false;
    default:
      return true;
  }
}

void AppendReprCharacter(uint32_t code, char quote, std::string& out) {
  switch (code) {
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    case '\\':
      out += "\\\\";
      return;
    default:
      break;
  }
  if (code == static_cast<uint32_t>(quote)) out += '\\';
  if (IsPrinted(code)) {
    AppendCharacter(code, out);
  } else if (code < 0x100) {
    absl::StrAppendFormat(&out, "\\x%02x", code);
  } else if (code < 0x10000) {
    absl::StrAppendFormat(&out, "\\u%04x", code);
  } else {
    absl::StrAppendFormat(&out, "\\U%08x", code);
  }
}

std::string ReprOfText(const std::string& text) {
  const bool has_single = absl::StrContains(text, '\'');
  const bool has_double = absl::StrContains(text, '"');
  const char quote = has_single && !has_double ? '"' : '\'';
  std::string out(1, quote);
  for (size_t at = 0; at < text.size();) {
    AppendReprCharacter(TakeCharacter(text, at), quote, out);
  }
  out += quote;
  return out;
}

absl::Status AppendReprOfText(const std::string& text, Budget& budget,
                              std::string& out) {
  RETURN_IF_ERROR(budget.SpendRead(text.size()));
  out += ReprOfText(text);
  return budget.CheckText(out.size());
}

absl::Status AppendRepr(const Value& value, Budget& budget, std::string& out);

absl::Status AppendReprOfSequence(const Value& value, Budget& budget,
                                  std::string& out) {
  const bool is_tuple = value.Is(Value::Kind::kTuple);
  out += is_tuple ? '(' : '[';
  const char* separator = "";
  for (const Value& item : value.items()) {
    out += separator;
    RETURN_IF_ERROR(AppendRepr(item, budget, out));
    separator = ", ";
  }
  if (is_tuple && value.items().size() == 1) out += ',';
  out += is_tuple ? ')' : ']';
  return absl::OkStatus();
}

absl::Status AppendReprOfDict(const Dict& dict, Budget& budget,
                              std::string& out) {
  out += '{';
  const char* separator = "";
  for (const auto& [key, item] : dict.entries()) {
    out += separator;
    RETURN_IF_ERROR(AppendReprOfText(key, budget, out));
    out += ": ";
    RETURN_IF_ERROR(AppendRepr(item, budget, out));
    separator = ", ";
  }
  out += '}';
  return absl::OkStatus();
}

absl::Status AppendRepr(const Value& value, Budget& budget, std::string& out) {
  RETURN_IF_ERROR(budget.Spend(1));
  switch (value.kind()) {
    case Value::Kind::kText:
      return AppendReprOfText(value.text(), budget, out);
    case Value::Kind::kList:
    case Value::Kind::kTuple:
      return AppendReprOfSequence(value, budget, out);
    case Value::Kind::kDict:
      return AppendReprOfDict(value.dict(), budget, out);
    case Value::Kind::kUndefined:
      out += "Undefined";
      return absl::OkStatus();
    default: {
      ASSIGN_OR_RETURN(const std::string text, TextOf(value, budget));
      out += text;
      return absl::OkStatus();
    }
  }
}

void AppendJsonCharacter(uint32_t code, bool ascii, std::string& out) {
  static constexpr absl::string_view kEscaped = "\"\\\n\r\t\b\f";
  static constexpr absl::string_view kLetters = "\"\\nrtbf";
  const size_t known =
      code < 0x80 ? kEscaped.find(static_cast<char>(code)) : std::string::npos;
  if (known != absl::string_view::npos) {
    out += '\\';
    out += kLetters[known];
  } else if (code < 0x20) {
    absl::StrAppendFormat(&out, "\\u%04x", code);
  } else if (!ascii || code < 0x7f) {
    AppendCharacter(code, out);
  } else if (code < 0x10000) {
    absl::StrAppendFormat(&out, "\\u%04x", code);
  } else {
    absl::StrAppendFormat(&out, "\\u%04x\\u%04x",
                          0xD800 + ((code - 0x10000) >> 10),
                          0xDC00 + ((code - 0x10000) & 0x3FF));
  }
}

class JsonWriter {
 public:
  JsonWriter(const JsonStyle& style, Budget& budget)
      : style_(style), budget_(budget) {}

  absl::Status Write(const Value& value) {
    RETURN_IF_ERROR(budget_.Spend(1));
    switch (value.kind()) {
      case Value::Kind::kNone:
        out_ += "null";
        return absl::OkStatus();
      case Value::Kind::kBool:
        out_ += value.integer() != 0 ? "true" : "false";
        return absl::OkStatus();
      case Value::Kind::kInt:
        absl::StrAppend(&out_, value.integer());
        return absl::OkStatus();
      case Value::Kind::kFloat:
        out_ += FloatText(value.number(), /*json=*/true);
        return absl::OkStatus();
      case Value::Kind::kText:
        return WriteText(value.text());
      case Value::Kind::kList:
      case Value::Kind::kTuple:
        return WriteList(value.items());
      case Value::Kind::kDict:
        return WriteDict(value.dict());
      default:
        return absl::InvalidArgumentError(
            absl::StrCat("tojson: ", value.kind_words(), " is no JSON"));
    }
  }

  std::string Take() { return std::move(out_); }

 private:
  absl::Status WriteText(const std::string& text) {
    RETURN_IF_ERROR(budget_.SpendRead(text.size()));
    out_ += '"';
    for (size_t at = 0; at < text.size();) {
      AppendJsonCharacter(TakeCharacter(text, at), style_.ascii, out_);
    }
    out_ += '"';
    return budget_.CheckText(out_.size());
  }

  absl::Status WriteList(const List& items) {
    if (items.empty()) {
      out_ += "[]";
      return absl::OkStatus();
    }
    out_ += '[';
    ++depth_;
    bool first = true;
    for (const Value& item : items) {
      RETURN_IF_ERROR(Separate(first));
      RETURN_IF_ERROR(Write(item));
    }
    --depth_;
    RETURN_IF_ERROR(NewLine());
    out_ += ']';
    return absl::OkStatus();
  }

  absl::Status WriteDict(const Dict& dict) {
    if (dict.size() == 0) {
      out_ += "{}";
      return absl::OkStatus();
    }
    std::vector<const std::pair<std::string, Value>*> entries;
    for (const auto& entry : dict.entries()) entries.push_back(&entry);
    if (style_.sort_keys) {
      std::sort(
          entries.begin(), entries.end(),
          [](const auto* a, const auto* b) { return a->first < b->first; });
    }
    out_ += '{';
    ++depth_;
    bool first = true;
    for (const auto* entry : entries) {
      RETURN_IF_ERROR(Separate(first));
      RETURN_IF_ERROR(WriteText(entry->first));
      out_ += style_.key_separator;
      RETURN_IF_ERROR(Write(entry->second));
    }
    --depth_;
    RETURN_IF_ERROR(NewLine());
    out_ += '}';
    return absl::OkStatus();
  }

  absl::Status Separate(bool& first) {
    if (!first) out_ += style_.item_separator;
    first = false;
    return NewLine();
  }
  // Separators and indents are texts of the template, as long as it likes.
  absl::Status NewLine() {
    RETURN_IF_ERROR(budget_.SpendRead(style_.item_separator.size() +
                                      style_.key_separator.size()));
    if (style_.indent.has_value()) {
      out_ += '\n';
      for (int i = 0; i < depth_; ++i) {
        RETURN_IF_ERROR(budget_.SpendRead(style_.indent->size()));
        out_ += *style_.indent;
        RETURN_IF_ERROR(budget_.CheckText(out_.size()));
      }
    }
    return budget_.CheckText(out_.size());
  }

  const JsonStyle& style_;
  Budget& budget_;
  int depth_ = 0;
  std::string out_;
};

}  // namespace

absl::StatusOr<std::string> TextOf(const Value& value, Budget& budget) {
  switch (value.kind()) {
    case Value::Kind::kUndefined:
      return std::string();
    case Value::Kind::kNone:
      return std::string("None");
    case Value::Kind::kBool:
      return std::string(value.integer() != 0 ? "True" : "False");
    case Value::Kind::kInt:
      return absl::StrCat(value.integer());
    case Value::Kind::kFloat:
      return FloatText(value.number(), /*json=*/false);
    case Value::Kind::kText:
      RETURN_IF_ERROR(budget.SpendRead(value.text().size()));
      return value.text();
    case Value::Kind::kList:
    case Value::Kind::kTuple:
    case Value::Kind::kDict: {
      std::string out;
      RETURN_IF_ERROR(AppendRepr(value, budget, out));
      return out;
    }
    default:
      return HasNoText(value);
  }
}

absl::StatusOr<std::string> JsonOf(const Value& value, const JsonStyle& style,
                                   Budget& budget) {
  JsonWriter writer(style, budget);
  RETURN_IF_ERROR(writer.Write(value));
  return writer.Take();
}

}  // namespace troupe::chat
