#include "proto/plan/graph/graph_text.h"

#include "absl/strings/str_cat.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/text_format.h"
#include "proto/base/one_line.h"
#include "proto/base/status.h"

namespace troupe {
namespace {

using google::protobuf::TextFormat;

constexpr size_t kNameBytesMax = 256;
constexpr size_t kComplaintMax = 512;

// Keeps the first complaint of the parser, whose lines begin at 0.
class FirstError final : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, int, const std::string& message) override {
    if (!message_.empty()) return;
    line_ = line + 1;
    message_ = OneLine(message, kComplaintMax);
  }
  void AddWarning(int, int, const std::string&) override {}

  int line() const { return line_; }
  const std::string& message() const { return message_; }

 private:
  int line_ = 0;
  std::string message_;
};

void FindLines(const TextFormat::ParseInfoTree& tree, GraphText& text) {
  const auto* const batch = ModelGraph::descriptor()->FindFieldByName("batch");
  for (int t = 0; t < text.graph.batch_size(); ++t) {
    text.batch_lines.push_back(tree.GetLocation(batch, t).line + 1);
  }
  const auto* const units = ModelGraph::descriptor()->FindFieldByName("unit");
  const auto* const ops = GraphUnit::descriptor()->FindFieldByName("op");
  for (int u = 0; u < text.graph.unit_size(); ++u) {
    text.unit_lines.push_back(tree.GetLocation(units, u).line + 1);
    std::vector<int>& lines = text.op_lines.emplace_back();
    const TextFormat::ParseInfoTree* const of_unit =
        tree.GetTreeForNested(units, u);
    for (int i = 0; i < text.graph.unit(u).op_size(); ++i) {
      lines.push_back(of_unit == nullptr
                          ? text.unit_lines.back()
                          : of_unit->GetLocation(ops, i).line + 1);
    }
  }
}

}  // namespace

absl::Status GraphText::Error(int line, absl::string_view what) const {
  return absl::InvalidArgumentError(
      line > 0 ? absl::StrCat(name, ":", line, ": ", what)
               : absl::StrCat(name, ": ", what));
}

absl::StatusOr<GraphText> ParseGraphText(absl::string_view name,
                                         const std::string& text) {
  GraphText parsed;
  parsed.name =
      name.empty() ? "graph" : OneLine(std::string(name), kNameBytesMax);
  if (static_cast<int64_t>(text.size()) > kGraphBytesMax) {
    return parsed.Error(
        0, absl::StrCat("has ", text.size(), " bytes, more than ",
                        kGraphBytesMax, "; use `repeat` for equal units"));
  }
  FirstError error;
  TextFormat::ParseInfoTree tree;
  TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  parser.WriteLocationsTo(&tree);
  if (!parser.ParseFromString(text, &parsed.graph)) {
    return parsed.Error(error.line(), error.message().empty()
                                          ? "is no model graph"
                                          : error.message());
  }
  FindLines(tree, parsed);
  return parsed;
}

}  // namespace troupe
