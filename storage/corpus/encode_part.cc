#include "storage/corpus/encode_part.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "proto/base/status.h"
#include "storage/corpus/json_field.h"

namespace troupe {
namespace {

// The text of a line; it is kept in `buffer` where it is not the line itself.
absl::StatusOr<absl::string_view> TextOfLine(TextFormat format,
                                             const PartRules& rules,
                                             absl::string_view line,
                                             std::string& buffer) {
  if (line.size() > rules.line_bytes_max) {
    return absl::InvalidArgumentError(
        absl::StrCat("the line has ", line.size(), " bytes, more than ",
                     rules.line_bytes_max,
                     "; break it into shorter ones, or raise --max-line-mib"));
  }
  if (format == TextFormat::kLines) return line;
  ASSIGN_OR_RETURN(buffer, JsonTextField(line, rules.field));
  return absl::string_view(buffer);
}

absl::string_view AdviceFor(TextFormat format) {
  return format == TextFormat::kJsonl
             ? "; mend the line, name another --field, or leave such lines out "
               "with --skip-bad-lines"
             : "";
}

absl::Status EncodeText(const Tokenizer& tokenizer, const TextPart& part,
                        EncodedPart& out) {
  RETURN_IF_ERROR(Annotate(part.begins
                               ? tokenizer.Encode(part.text, out.ids)
                               : tokenizer.EncodeLater(part.text, out.ids),
                           part.file->path));
  const bool is_empty = part.begins && part.text.empty();
  if (!part.ends || is_empty) return absl::OkStatus();
  if (tokenizer.eos_id().has_value()) out.ids.push_back(*tokenizer.eos_id());
  out.ends.push_back(out.ids.size());
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<int64_t> ForEachDocument(
    const PartRules& rules, const TextPart& part,
    absl::FunctionRef<absl::Status(absl::string_view text)> each) {
  const TextFormat format = part.file->format;
  int64_t number = part.first_line;
  int64_t skipped = 0;
  std::string buffer;
  for (absl::string_view left = part.text; !left.empty(); ++number) {
    absl::string_view line = left.substr(0, left.find('\n'));
    left.remove_prefix(std::min(left.size(), line.size() + 1));
    absl::ConsumeSuffix(&line, "\r");
    const bool is_empty = format == TextFormat::kJsonl
                              ? absl::StripAsciiWhitespace(line).empty()
                              : line.empty();
    if (is_empty) continue;
    const absl::StatusOr<absl::string_view> text =
        TextOfLine(format, rules, line, buffer);
    const absl::Status done = text.ok() ? each(*text) : text.status();
    if (done.ok()) continue;
    if (text.ok() || !rules.skip_bad_lines) {
      return Annotate(
          absl::Status(done.code(),
                       absl::StrCat(done.message(), AdviceFor(format))),
          absl::StrCat(part.file->path, ":", number));
    }
    ++skipped;
  }
  return skipped;
}

absl::Status EncodeTextPart(const Tokenizer& tokenizer, const PartRules& rules,
                            const TextPart& part, EncodedPart& out) {
  if (part.file->format == TextFormat::kText) {
    return EncodeText(tokenizer, part, out);
  }
  ASSIGN_OR_RETURN(
      out.skipped,
      ForEachDocument(rules, part, [&](absl::string_view text) -> absl::Status {
        const size_t had = out.ids.size();
        RETURN_IF_ERROR(tokenizer.Encode(text, out.ids));
        if (out.ids.size() == had) return absl::OkStatus();
        if (tokenizer.eos_id().has_value()) {
          out.ids.push_back(*tokenizer.eos_id());
        }
        out.ends.push_back(out.ids.size());
        return absl::OkStatus();
      }));
  return absl::OkStatus();
}

}  // namespace troupe
