#include "proto/plan/graph/expand_graph.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "proto/base/one_line.h"
#include "proto/base/status.h"
#include "proto/plan/graph/graph_batch.h"
#include "proto/plan/model_fields.h"

namespace troupe {
namespace {

constexpr char kLayer[] = "{layer}";
constexpr char kBefore[] = "before";
constexpr char kBatch[] = "batch";
constexpr size_t kNameMax = 256;
constexpr int kUnitsMax = kModelLayersMax + 2;
constexpr int64_t kOpsMax = 1 << 16;
constexpr int64_t kExpandedBytesMax = int64_t{1} << 26;

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// Calls visit(name of the field, text) for every text in the message.
template <typename Visit>
void VisitTexts(Message& message, const Visit& visit) {
  const auto* const reflection = message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection->ListFields(message, &fields);
  for (const FieldDescriptor* const field : fields) {
    if (field->type() == FieldDescriptor::TYPE_STRING) {
      reflection->SetString(
          &message, field,
          visit(field->name(), reflection->GetString(message, field)));
    } else if (field->type() == FieldDescriptor::TYPE_MESSAGE) {
      if (!field->is_repeated()) {
        VisitTexts(*reflection->MutableMessage(&message, field), visit);
        continue;
      }
      for (int i = 0; i < reflection->FieldSize(message, field); ++i) {
        VisitTexts(*reflection->MutableRepeatedMessage(&message, field, i),
                   visit);
      }
    }
  }
}

std::string OfCopy(absl::string_view text, int copy) {
  return absl::StrReplaceAll(text, {{kLayer, absl::StrCat(copy)}});
}

class Expansion {
 public:
  explicit Expansion(const GraphText& text) : text_(text) {}

  absl::StatusOr<std::vector<ExpandedUnit>> Run() {
    if (text_.graph.unit().empty()) {
      return text_.Error(0, "has no `unit { ... }`: there is nothing to train");
    }
    RETURN_IF_ERROR(CheckSize());
    for (int u = 0; u < text_.graph.unit_size(); ++u) {
      const int copies = CopiesOf(text_.graph.unit(u));
      for (int copy = 0; copy < copies; ++copy) {
        RETURN_IF_ERROR(AddUnit(u, copy));
      }
    }
    for (size_t u = 0; u < units_.size(); ++u) {
      for (const GraphRead& read : units_[u].reads) {
        std::vector<GraphExport>& exports = units_[read.unit].exports;
        const bool known =
            std::any_of(exports.begin(), exports.end(), [&](const auto& of) {
              return of.tensor == read.tensor &&
                     of.reader == static_cast<int>(u);
            });
        if (known) continue;
        exports.push_back({.tensor = read.tensor,
                           .reader = static_cast<int>(u),
                           .line = read.line});
      }
    }
    return std::move(units_);
  }

 private:
  static int CopiesOf(const GraphUnit& unit) {
    return unit.has_repeat() ? unit.repeat() : 1;
  }

  absl::Status CheckSize() const {
    int64_t units = 0;
    int64_t ops = 0;
    int64_t bytes = 0;
    for (int u = 0; u < text_.graph.unit_size(); ++u) {
      const GraphUnit& unit = text_.graph.unit(u);
      const int64_t copies = CopiesOf(unit);
      if (copies < 1 || copies > kUnitsMax) {
        return text_.Error(
            text_.unit_lines[u],
            absl::StrCat("repeat is ", copies, "; use 1 to ", kUnitsMax));
      }
      units += copies;
      ops += copies * unit.op_size();
      bytes += copies * static_cast<int64_t>(unit.ByteSizeLong());
      if (units <= kUnitsMax && ops <= kOpsMax && bytes <= kExpandedBytesMax) {
        continue;
      }
      return text_.Error(
          text_.unit_lines[u],
          absl::StrCat("up to here the graph has ", units, " units, ", ops,
                       " ops and ", bytes, " bytes; at most ", kUnitsMax, ", ",
                       kOpsMax, " and ", kExpandedBytesMax, " are possible"));
    }
    return absl::OkStatus();
  }

  absl::Status AddUnit(int index, int copy) {
    const GraphUnit& spec = text_.graph.unit(index);
    ExpandedUnit unit = {.name = OfCopy(spec.name(), copy),
                         .copy = copy,
                         .copies = CopiesOf(spec),
                         .line = text_.unit_lines[index],
                         .ops = {spec.op().begin(), spec.op().end()},
                         .lines = text_.op_lines[index],
                         .reads = {},
                         .exports = {}};
    RETURN_IF_ERROR(CheckName(unit, spec.name()));
    for (size_t i = 0; i < unit.ops.size(); ++i) {
      std::vector<std::string> reads;
      VisitTexts(unit.ops[i],
                 [&](const std::string& field, const std::string& text) {
                   std::string own = OfCopy(text, copy);
                   const bool is_read = field == "x" || field == "residual";
                   if (is_read && absl::StrContains(own, ':') &&
                       !absl::StartsWith(own, kBatchPrefix)) {
                     reads.push_back(own);
                   }
                   return own;
                 });
      for (const std::string& read : reads) {
        RETURN_IF_ERROR(AddRead(static_cast<int>(i), read, unit));
      }
    }
    numbers_[unit.name] = static_cast<int>(units_.size());
    units_.push_back(std::move(unit));
    return absl::OkStatus();
  }

  absl::Status CheckName(const ExpandedUnit& unit,
                         const std::string& written) const {
    if (unit.name.empty()) {
      return text_.Error(unit.line, "the unit has no name");
    }
    if (unit.name == kBefore || unit.name == kBatch ||
        absl::StrContains(unit.name, ':') || !IsOneLine(unit.name, kNameMax)) {
      return text_.Error(
          unit.line,
          absl::StrCat("\"", OneLine(unit.name, kNameMax),
                       "\" is no name of a unit: use one line of at "
                       "most ",
                       kNameMax, " bytes without a colon, and not \"", kBefore,
                       "\" or \"", kBatch, "\""));
    }
    if (numbers_.count(unit.name) == 0) return absl::OkStatus();
    const bool repeats = unit.copies > 1 && !absl::StrContains(written, kLayer);
    return text_.Error(
        unit.line,
        absl::StrCat("there are two units \"", unit.name, "\"",
                     repeats ? "; put {layer} into the name of a unit that is "
                               "repeated"
                             : ""));
  }

  absl::Status AddRead(int op, const std::string& read, ExpandedUnit& unit) {
    const int line = unit.lines[op];
    const size_t colon = read.find(':');
    const std::string of = read.substr(0, colon);
    const std::string where = OpWords(unit.ops[op], unit);
    int from = static_cast<int>(units_.size()) - 1;
    if (of == kBefore && from < 0) {
      return text_.Error(
          line, absl::StrCat(where, " reads \"", OneLine(read, kNameMax),
                             "\", but no unit is before it"));
    }
    if (of != kBefore) {
      const auto found = numbers_.find(of);
      if (found == numbers_.end()) {
        return text_.Error(
            line, absl::StrCat(where, " reads \"", OneLine(read, kNameMax),
                               "\", but there is no unit \"",
                               OneLine(of, kNameMax), "\" before it"));
      }
      from = found->second;
    }
    const bool known =
        std::any_of(unit.reads.begin(), unit.reads.end(),
                    [&](const GraphRead& one) { return one.text == read; });
    if (known) return absl::OkStatus();
    unit.reads.push_back({.text = read,
                          .unit = from,
                          .tensor = read.substr(colon + 1),
                          .line = line});
    return absl::OkStatus();
  }

  const GraphText& text_;
  std::vector<ExpandedUnit> units_;
  std::map<std::string, int> numbers_;
};

}  // namespace

absl::StatusOr<std::vector<ExpandedUnit>> ExpandGraph(const GraphText& text) {
  return Expansion(text).Run();
}

std::string KindName(const GraphOp& op) {
  const auto* const field =
      GraphOp::descriptor()->FindFieldByNumber(op.kind_case());
  return field == nullptr ? "" : field->name();
}

std::string OpWords(const GraphOp& op, const ExpandedUnit& unit) {
  return absl::StrCat("op ", KindName(op), " of unit ", unit.name);
}

}  // namespace troupe
