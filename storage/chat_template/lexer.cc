#include "storage/chat_template/lexer.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "proto/base/status.h"
#include "storage/chat_template/python_text.h"

namespace troupe::chat {
namespace {

// The longer of two that begin alike comes first.
constexpr std::array<absl::string_view, 26> kOperators = {
    "**", "//", "==", "!=", "<=", ">=", "~", "+", "-", "*", "/", "%", "<",
    ">",  "=",  "(",  ")",  "[",  "]",  "{", "}", ",", ":", ".", "|", ";"};

bool IsNameStart(char c) {
  return absl::ascii_isalpha(static_cast<uint8_t>(c)) || c == '_';
}

bool IsNamePart(char c) {
  return IsNameStart(c) || absl::ascii_isdigit(static_cast<uint8_t>(c));
}

bool IsDigit(char c) { return absl::ascii_isdigit(static_cast<uint8_t>(c)); }

// As Jinja2 reads a source: newlines are \n, and one at the end is left out.
std::string Normalized(absl::string_view source) {
  std::string text =
      absl::StrReplaceAll(source, {{"\r\n", "\n"}, {"\r", "\n"}});
  if (absl::EndsWith(text, "\n")) text.pop_back();
  return text;
}

class Lexer {
 public:
  explicit Lexer(std::string source) : source_(std::move(source)) {}

  absl::StatusOr<std::vector<Token>> Run() {
    while (at_ < source_.size()) RETURN_IF_ERROR(TextAndTag());
    Add(Token::Kind::kEnd, "");
    return std::move(tokens_);
  }

 private:
  absl::string_view Left() const {
    return absl::string_view(source_).substr(at_);
  }
  bool LooksAt(absl::string_view what) const {
    return absl::StartsWith(Left(), what);
  }

  // Places come in their order, so lines are counted once.
  Place PlaceOf(size_t at) {
    for (; counted_ < at; ++counted_) {
      if (source_[counted_] != '\n') continue;
      ++line_;
      line_begin_ = counted_ + 1;
    }
    return {.line = line_, .column = static_cast<int>(at - line_begin_) + 1};
  }

  Token& Add(Token::Kind kind, absl::string_view text) {
    tokens_.push_back(
        {.kind = kind, .place = PlaceOf(at_), .text = std::string(text)});
    return tokens_.back();
  }

  absl::Status Error(absl::string_view what) {
    return ErrorAt(PlaceOf(at_), what);
  }

  // The text up to the next tag, and the tag.
  absl::Status TextAndTag() {
    size_t open = at_;
    while (true) {
      open = source_.find('{', open);
      if (open == std::string::npos || open + 1 >= source_.size()) {
        open = source_.size();
        break;
      }
      const char next = source_[open + 1];
      if (next == '%' || next == '{' || next == '#') break;
      ++open;
    }
    const bool ends = open == source_.size();
    const char kind = ends ? '\0' : source_[open + 1];
    const char sign = open + 2 < source_.size() ? source_[open + 2] : '\0';
    AddText(StripBefore(absl::string_view(source_).substr(at_, open - at_),
                        kind, sign));
    at_ = open;
    if (ends) return absl::OkStatus();
    if (kind == '#') return SkipComment();
    if (kind == '%' && RawBegins()) return Raw();
    Add(kind == '%' ? Token::Kind::kBlockBegin : Token::Kind::kPrintBegin, "");
    at_ += 2;
    if (sign == '-' || sign == '+') ++at_;
    return Inside(kind == '%');
  }

  void AddText(absl::string_view text) {
    if (!text.empty()) Add(Token::Kind::kText, text);
  }

  // What a tag leaves of the text before it.
  absl::string_view StripBefore(absl::string_view text, char kind,
                                char sign) const {
    if (kind == '\0') return text;
    if (sign == '-') return StripSpacesAtEnd(text);
    if (sign == '+' || kind == '{') return text;
    const size_t newline = text.rfind('\n');
    const size_t begin = newline == absl::string_view::npos ? 0 : newline + 1;
    if (begin == 0 && !line_starts_) return text;
    const absl::string_view last = text.substr(begin);
    return StripSpacesAtEnd(last).empty() ? text.substr(0, begin) : text;
  }

  static absl::string_view StripSpacesAtEnd(absl::string_view text) {
    return text.substr(
        0, Strip(text, std::nullopt, {.left = false, .right = true}).size());
  }

  void SkipSpaces() {
    size_t next = at_;
    while (at_ < source_.size() && IsSpace(TakeCharacter(source_, next))) {
      at_ = next;
    }
  }

  // Behind the end of a tag whose last sign is `sign`.
  void AfterTag(char sign, bool trims) {
    if (sign == '-') {
      SkipSpaces();
    } else if (trims && sign != '+' && LooksAt("\n")) {
      ++at_;
    }
    line_starts_ = at_ > 0 && source_[at_ - 1] == '\n';
  }

  absl::Status SkipComment() {
    const size_t end = source_.find("#}", at_ + 2);
    if (end == std::string::npos) {
      return Error("the comment that begins here is not closed by #}");
    }
    const char sign = end > at_ + 2 ? source_[end - 1] : '\0';
    at_ = end + 2;
    AfterTag(sign, /*trims=*/true);
    return absl::OkStatus();
  }

  // Whether `{% word %}` stands at `at`; then `at` moves behind it, and `sign`
  // is its last one.
  bool IsTagOf(absl::string_view word, size_t& at, char& sign) const {
    size_t here = at + 2;
    if (here < source_.size() && (source_[here] == '-' || source_[here] == '+'))
      ++here;
    const auto skip = [&] {
      while (here < source_.size() &&
             absl::ascii_isspace(static_cast<uint8_t>(source_[here]))) {
        ++here;
      }
    };
    skip();
    if (!absl::StartsWith(absl::string_view(source_).substr(here), word)) {
      return false;
    }
    here += word.size();
    skip();
    sign = here < source_.size() ? source_[here] : '\0';
    if (sign == '-' || sign == '+') ++here;
    if (!absl::StartsWith(absl::string_view(source_).substr(here), "%}")) {
      return false;
    }
    at = here + 2;
    return true;
  }

  bool RawBegins() const {
    size_t at = at_;
    char sign = '\0';
    return IsTagOf("raw", at, sign);
  }

  // `{% raw %}` up to `{% endraw %}` is text.
  absl::Status Raw() {
    const size_t begin = at_;
    char sign = '\0';
    IsTagOf("raw", at_, sign);
    if (sign == '-') SkipSpaces();
    if (sign != '-' && sign != '+' && LooksAt("\n")) ++at_;
    line_starts_ = at_ > 0 && source_[at_ - 1] == '\n';
    for (size_t open = source_.find("{%", at_); open != std::string::npos;
         open = source_.find("{%", open + 2)) {
      size_t end = open;
      if (!IsTagOf("endraw", end, sign)) continue;
      AddText(StripBefore(absl::string_view(source_).substr(at_, open - at_),
                          '%', source_[open + 2]));
      at_ = end;
      AfterTag(sign, /*trims=*/true);
      return absl::OkStatus();
    }
    at_ = begin;
    return Error("{% raw %} without {% endraw %}");
  }

  // Within a tag, up to its end.
  absl::Status Inside(bool is_block) {
    const absl::string_view close = is_block ? "%}" : "}}";
    const Place tag = tokens_.back().place;
    std::string open;  // brackets
    while (true) {
      SkipSpaces();
      if (at_ >= source_.size()) {
        return ErrorAt(tag, absl::StrCat("the tag is not closed by ", close));
      }
      const char sign = source_[at_];
      const bool is_signed = (sign == '-' || (sign == '+' && is_block)) &&
                             absl::StartsWith(Left().substr(1), close);
      if (open.empty() && (is_signed || LooksAt(close))) {
        Add(is_block ? Token::Kind::kBlockEnd : Token::Kind::kPrintEnd, close);
        at_ += close.size() + (is_signed ? 1 : 0);
        AfterTag(is_signed ? sign : '\0', is_block);
        return absl::OkStatus();
      }
      RETURN_IF_ERROR(OneToken(open));
    }
  }

  absl::Status OneToken(std::string& open) {
    const char c = source_[at_];
    if (IsNameStart(c)) return Name();
    if (IsDigit(c)) return Number();
    if (c == '\'' || c == '"') return String();
    for (const absl::string_view word : kOperators) {
      if (!LooksAt(word)) continue;
      Add(Token::Kind::kOperator, word);
      at_ += word.size();
      return Balance(word[0], open);
    }
    return Error(absl::StrCat("unexpected character '",
                              CharactersOf(Left().substr(0, 4)).front(),
                              "' within a tag"));
  }

  // The brackets that are open: }} closes a dict and not the tag where one is.
  absl::Status Balance(char c, std::string& open) {
    constexpr absl::string_view kOpening = "([{";
    constexpr absl::string_view kClosing = ")]}";
    if (absl::StrContains(kOpening, absl::string_view(&c, 1))) {
      open += kClosing[kOpening.find(c)];
    } else if (absl::StrContains(kClosing, absl::string_view(&c, 1))) {
      if (open.empty() || open.back() != c) {
        --at_;
        return Error(
            absl::StrCat("unexpected '", absl::string_view(&c, 1), "'"));
      }
      open.pop_back();
    }
    return absl::OkStatus();
  }

  absl::Status Name() {
    size_t end = at_;
    while (end < source_.size() && IsNamePart(source_[end])) ++end;
    Add(Token::Kind::kName, Left().substr(0, end - at_));
    at_ = end;
    return absl::OkStatus();
  }

  // Moves behind "e" and a sign, where digits follow.
  bool TakeExponent(size_t& end) const {
    size_t at = end;
    if (at >= source_.size() || (source_[at] != 'e' && source_[at] != 'E')) {
      return false;
    }
    ++at;
    if (at < source_.size() && (source_[at] == '-' || source_[at] == '+')) ++at;
    if (at >= source_.size() || !IsDigit(source_[at])) return false;
    end = at;
    return true;
  }

  absl::Status Number() {
    size_t end = at_;
    const auto digits = [&] {
      while (end < source_.size() && IsDigit(source_[end])) ++end;
    };
    digits();
    const bool has_point = end + 1 < source_.size() && source_[end] == '.' &&
                           IsDigit(source_[end + 1]);
    if (has_point) {
      ++end;
      digits();
    }
    const bool has_exponent = TakeExponent(end);
    if (has_exponent) digits();
    const bool is_float = has_point || has_exponent;
    if (end < source_.size() && IsNamePart(source_[end])) {
      return Error(
          "numbers are decimal, like 10 or 1.5e3; others are not supported");
    }
    const absl::string_view text = Left().substr(0, end - at_);
    Token& token =
        Add(is_float ? Token::Kind::kFloat : Token::Kind::kInt, text);
    const bool ok = is_float ? absl::SimpleAtod(text, &token.number)
                             : absl::SimpleAtoi(text, &token.integer);
    if (!ok) return Error(absl::StrCat("the number ", text, " is too large"));
    at_ = end;
    return absl::OkStatus();
  }

  absl::Status String() {
    const char quote = source_[at_];
    size_t end = at_ + 1;
    while (end < source_.size() && source_[end] != quote) {
      end += source_[end] == '\\' ? 2 : 1;
    }
    if (end >= source_.size()) return Error("the string is not closed");
    const size_t begin = at_ + 1;
    Token& token = Add(Token::Kind::kString, "");
    ASSIGN_OR_RETURN(token.text, Unescaped(absl::string_view(source_).substr(
                                     begin, end - begin)));
    at_ = end + 1;
    return absl::OkStatus();
  }

  absl::StatusOr<std::string> Unescaped(absl::string_view text) {
    std::string out;
    for (size_t at = 0; at < text.size(); ++at) {
      if (text[at] != '\\') {
        out += text[at];
        continue;
      }
      ++at;
      RETURN_IF_ERROR(Escape(text, at, out));
    }
    return out;
  }

  // Python's escapes. `at` is behind the backslash, and then at the last
  // character.
  absl::Status Escape(absl::string_view text, size_t& at, std::string& out) {
    constexpr absl::string_view kLetters = "ntr\\'\"abfv";
    constexpr absl::string_view kMeant = "\n\t\r\\'\"\a\b\f\v";
    const char c = text[at];
    const size_t known = kLetters.find(c);
    if (known != absl::string_view::npos) {
      out += kMeant[known];
      return absl::OkStatus();
    }
    if (c == '\n') return absl::OkStatus();
    if (c == 'N') return Error("\\N{...} in a string is not supported");
    if (c == 'x' || c == 'u' || c == 'U') {
      const size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : 8;
      return CodePoint(text, at, {.digits = digits, .base = 16}, out);
    }
    if (c >= '0' && c <= '7') {
      size_t digits = 1;
      while (digits < 3 && at + digits < text.size() &&
             text[at + digits] >= '0' && text[at + digits] <= '7') {
        ++digits;
      }
      --at;
      return CodePoint(text, at, {.digits = digits, .base = 8}, out);
    }
    out += '\\';
    out += c;
    return absl::OkStatus();
  }

  struct CodeForm {
    size_t digits = 0;
    int base = 16;
  };
  absl::Status CodePoint(absl::string_view text, size_t& at, CodeForm form,
                         std::string& out) {
    const std::string digits(text.substr(at + 1, form.digits));
    char* end = nullptr;
    const uint64_t code = strtoul(digits.c_str(), &end, form.base);
    if (digits.size() != form.digits || end != digits.c_str() + form.digits ||
        !absl::ascii_isxdigit(static_cast<uint8_t>(digits[0])) ||
        code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) {
      return Error("a bad escape in a string");
    }
    AppendCharacter(static_cast<uint32_t>(code), out);
    at += form.digits;
    return absl::OkStatus();
  }

  const std::string source_;
  size_t at_ = 0;
  bool line_starts_ = true;  // what stands before at_ ended a line
  std::vector<Token> tokens_;
  size_t counted_ = 0;
  int line_ = 1;
  size_t line_begin_ = 0;
};

}  // namespace

absl::StatusOr<std::vector<Token>> Tokenize(absl::string_view source) {
  return Lexer(Normalized(source)).Run();
}

}  // namespace troupe::chat
