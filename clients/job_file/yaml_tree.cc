#include "clients/job_file/yaml_tree.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <sstream>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "proto/base/status.h"
#include "yaml-cpp/eventhandler.h"
#include "yaml-cpp/exceptions.h"
#include "yaml-cpp/mark.h"
#include "yaml-cpp/parser.h"

namespace troupe {
namespace {

// What a tree takes: a short text of aliases can stand for a huge one.
struct TreeSize {
  int64_t nodes = 0;
  int64_t bytes = 0;  // of texts

  TreeSize& operator+=(const TreeSize& other) {
    nodes += other.nodes;
    bytes += other.bytes;
    return *this;
  }
};

TreeSize SizeOf(const YamlNode& node) {
  TreeSize size = {1, static_cast<int64_t>(node.text.size())};
  for (const YamlNode& key : node.keys) size += SizeOf(key);
  for (const YamlNode& item : node.items) size += SizeOf(item);
  return size;
}

// Length of the UTF-8 sequence at the front of `text`; 0 where there is none.
int Utf8Length(absl::string_view text) {
  const unsigned char first = text[0];
  if (first < 0x80) return first == 0 ? 0 : 1;
  const int length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < length) return 0;
  for (int i = 1; i < length; ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xc0) != 0x80) return 0;
  }
  const unsigned char second = text[1];
  if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f) ||
      (first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f)) {
    return 0;
  }
  return length;
}

// Builds the tree from the parser's events. The first fault is kept, and what
// comes after it is ignored.
class TreeBuilder final : public YAML::EventHandler {
 public:
  explicit TreeBuilder(const YamlSource& source) : source_(source) {}

  YamlNode& root() { return root_; }
  const absl::Status& status() const { return status_; }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ == 2) {
      Fail(At(mark, YamlNode::Kind::kNull),
           "a second document begins here; a job file holds one");
    }
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    Leaf(At(mark, YamlNode::Kind::kNull), anchor);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag,
                YAML::anchor_t anchor, const std::string& value) override {
    YamlNode node = At(mark, YamlNode::Kind::kScalar);
    node.text = value;
    // The text is UTF-8, but the library makes bytes of some escapes.
    if (!IsUtf8(value)) {
      Fail(node, "an escape in it makes no UTF-8 text; write the character");
    }
    node.quoted = tag == "!" || tag == "tag:yaml.org,2002:str";
    if (!node.quoted) CheckTag(node, tag);
    Leaf(std::move(node), anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (!status_.ok()) return;  // the sizes of thousands more take seconds
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) {
      Fail(At(mark, YamlNode::Kind::kNull), "an alias inside its own anchor");
      return;
    }
    if (Takes(found->second, SizeOf(found->second))) Place(found->second);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag,
                       YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    Open(At(mark, YamlNode::Kind::kList), tag, anchor);
  }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag,
                  YAML::anchor_t anchor, YAML::EmitterStyle::value) override {
    Open(At(mark, YamlNode::Kind::kMap), tag, anchor);
  }
  void OnSequenceEnd() override { Close(); }
  void OnMapEnd() override { Close(); }

 private:
  struct OpenNode {
    YamlNode node;
    YAML::anchor_t anchor;
  };

  static YamlNode At(const YAML::Mark& mark, YamlNode::Kind kind) {
    YamlNode node;
    node.kind = kind;
    node.line = mark.line + 1;
    node.column = mark.column + 1;
    return node;
  }

  void Fail(const YamlNode& node, absl::string_view what) {
    if (status_.ok()) status_ = source_.Error(node, what);
  }

  void CheckTag(const YamlNode& node, const std::string& tag) {
    if (tag.empty() || tag == "?") return;
    Fail(node, absl::StrCat("the tag ", tag, " means nothing in a job file"));
  }

  void Open(YamlNode node, const std::string& tag, YAML::anchor_t anchor) {
    if (!status_.ok()) return;
    CheckTag(node, tag);
    if (open_.size() >= kYamlDepthMax) {
      Fail(node, absl::StrCat("nested deeper than ", kYamlDepthMax, " levels"));
    }
    open_.push_back({std::move(node), anchor});
  }

  void Close() {
    if (!status_.ok()) return;
    OpenNode closed = std::move(open_.back());
    open_.pop_back();
    if (closed.node.kind == YamlNode::Kind::kMap) CheckKeys(closed.node);
    Leaf(std::move(closed.node), closed.anchor);
  }

  void CheckKeys(const YamlNode& map) {
    std::map<std::string, const YamlNode*> seen;
    for (const YamlNode& key : map.keys) {
      if (key.kind != YamlNode::Kind::kScalar) {
        Fail(key,
             absl::StrCat("expected a field's name, found ", FoundText(key)));
        continue;
      }
      const auto [first, is_new] = seen.emplace(key.text, &key);
      if (is_new) continue;
      Fail(key, absl::StrCat(key.text, " is there twice; the first is in line ",
                             first->second->line));
    }
  }

  // Whether there is room for what `node` adds to the tree.
  bool Takes(const YamlNode& node, const TreeSize& added) {
    if (!status_.ok()) return false;
    size_ += added;
    if (size_.nodes > kYamlNodesMax) {
      Fail(node, absl::StrCat("more than ", kYamlNodesMax, " values"));
    } else if (size_.bytes > 2 * kYamlBytesMax) {
      Fail(node, absl::StrCat("more than ", 2 * kYamlBytesMax,
                              " bytes once aliases are expanded"));
    }
    return status_.ok();
  }

  // A node that is finished; what it holds is in the tree's size already.
  void Leaf(YamlNode node, YAML::anchor_t anchor) {
    const auto bytes = static_cast<int64_t>(node.text.size());
    if (!Takes(node, {.nodes = 1, .bytes = bytes})) return;
    if (anchor != 0) anchors_[anchor] = node;
    Place(std::move(node));
  }

  // Puts a node where the innermost open one expects it.
  void Place(YamlNode node) {
    if (open_.empty()) {
      root_ = std::move(node);
      return;
    }
    YamlNode& parent = open_.back().node;
    const bool is_key = parent.kind == YamlNode::Kind::kMap &&
                        parent.keys.size() == parent.items.size();
    (is_key ? parent.keys : parent.items).push_back(std::move(node));
  }

  const YamlSource& source_;
  YamlNode root_;
  absl::Status status_;
  std::vector<OpenNode> open_;
  std::map<YAML::anchor_t, YamlNode> anchors_;
  int documents_ = 0;
  TreeSize size_;
};

absl::Status CheckText(absl::string_view text, const YamlSource& source) {
  YamlNode place;
  if (text.size() > kYamlBytesMax) {
    return source.Error(place, absl::StrCat(text.size(), " bytes; at most ",
                                            kYamlBytesMax, " are read"));
  }
  for (size_t at = 0; at < text.size();) {
    const int length = Utf8Length(text.substr(at));
    if (length == 0) return source.Error(place, "this is not UTF-8 text");
    if (text[at] == '\n') {
      ++place.line;
      place.column = 0;
    }
    ++place.column;
    at += length;
  }
  return absl::OkStatus();
}

bool IsNumber(const YamlNode& node) {
  double value;
  return !node.quoted && absl::SimpleAtod(node.text, &value);
}

// The parser tells of a tab as of what it then misses, on that line or the
// next.
absl::Status NotYaml(const YAML::Exception& e, absl::string_view text,
                     const YamlSource& source) {
  YamlNode place;
  place.line = e.mark.line + 1;
  place.column = e.mark.column + 1;
  const std::vector<absl::string_view> lines = absl::StrSplit(text, '\n');
  for (int line = std::max(place.line - 1, 1); line <= place.line; ++line) {
    if (line > static_cast<int>(lines.size())) break;
    const absl::string_view indent =
        lines[line - 1].substr(0, lines[line - 1].find_first_not_of(" \t"));
    const size_t tab = indent.find('\t');
    if (tab == absl::string_view::npos) continue;
    place.line = line;
    place.column = static_cast<int>(tab) + 1;
    return source.Error(place,
                        absl::StrCat("not YAML: a tab begins this line, where "
                                     "only spaces may (",
                                     e.msg, ")"));
  }
  return source.Error(place, absl::StrCat("not YAML: ", e.msg));
}

}  // namespace

bool IsUtf8(absl::string_view text) {
  while (!text.empty()) {
    const int length = Utf8Length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string FoundText(const YamlNode& node) {
  switch (node.kind) {
    case YamlNode::Kind::kNull:
      return "nothing";
    case YamlNode::Kind::kList:
      return "a list";
    case YamlNode::Kind::kMap:
      return "a section with fields of its own";
    case YamlNode::Kind::kScalar:
      break;
  }
  const std::string shown = node.text.size() <= 40
                                ? node.text
                                : absl::StrCat(node.text.substr(0, 40), "...");
  if (IsNumber(node)) return absl::StrCat("the number ", shown);
  return absl::StrCat("the text \"", shown, "\"");
}

std::string YamlSource::At(const YamlNode& node) const {
  if (!has_lines) return name;
  return absl::StrCat(name, ":", node.line, ":", node.column);
}

absl::Status YamlSource::Error(const YamlNode& node,
                               absl::string_view what) const {
  return absl::InvalidArgumentError(absl::StrCat(At(node), ": ", what));
}

absl::StatusOr<YamlNode> ParseYaml(absl::string_view text,
                                   const YamlSource& source) {
  RETURN_IF_ERROR(CheckText(text, source));
  std::istringstream stream{std::string(text)};
  TreeBuilder builder(source);
  try {
    YAML::Parser parser(stream);
    while (builder.status().ok() && parser.HandleNextDocument(builder)) {
    }
  } catch (const YAML::Exception& e) {
    if (builder.status().ok()) return NotYaml(e, text, source);
  } catch (const std::exception& e) {
    return absl::InvalidArgumentError(
        absl::StrCat(source.name, ": not YAML: ", e.what()));
  }
  RETURN_IF_ERROR(builder.status());
  return std::move(builder.root());
}

}  // namespace troupe
