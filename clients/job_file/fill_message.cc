#include "clients/job_file/fill_message.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "clients/job_file/scalar_value.h"
#include "clients/job_file/suggest.h"
#include "google/protobuf/descriptor.h"
#include "proto/base/status.h"

namespace troupe {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

std::string Join(absl::string_view path, absl::string_view field) {
  return path.empty() ? std::string(field) : absl::StrCat(path, ".", field);
}

void AddPaths(const Descriptor& descriptor, const std::string& prefix,
              std::vector<std::string>& paths) {
  for (int i = 0; i < descriptor.field_count(); ++i) {
    const FieldDescriptor& field = *descriptor.field(i);
    const std::string path = Join(prefix, field.name());
    if (field.message_type() != nullptr && !field.is_map()) {
      AddPaths(*field.message_type(), path, paths);
    } else {
      paths.push_back(path);
    }
  }
}

// What the user may have meant by `name` in `descriptor`: a field of the same
// section, or one of this very name elsewhere, which is then given by its path.
// Where neither is near, the section's fields: what is not there is not built.
std::string WayOut(const std::string& name, const Descriptor& descriptor,
                   const Descriptor& root) {
  std::vector<std::string> siblings;
  for (int i = 0; i < descriptor.field_count(); ++i) {
    siblings.push_back(descriptor.field(i)->name());
  }
  const std::string sibling = Suggest(name, siblings);
  if (!sibling.empty()) return absl::StrCat("did you mean ", sibling, "?");
  const std::string ours = OurName(name);
  for (const std::string& path : FieldPaths(root)) {
    if (path == ours || absl::EndsWith(path, absl::StrCat(".", ours))) {
      return absl::StrCat("did you mean ", path, "?");
    }
  }
  return absl::StrCat("there are ", absl::StrJoin(siblings, ", "));
}

// One walk over one tree; carries what every step of it needs.
class Filler {
 public:
  Filler(const YamlSource& source, const Descriptor& root,
         PositionMap& positions)
      : source_(source), root_(root), positions_(positions) {}

  absl::Status Section(const YamlNode& node, const std::string& path,
                       Message& message) {
    if (node.kind == YamlNode::Kind::kNull) return absl::OkStatus();
    const FieldDescriptor* const mode =
        message.GetDescriptor()->FindFieldByName("mode");
    if (node.kind == YamlNode::Kind::kScalar && mode != nullptr) {
      return Located(node, path, SetScalar(node, *mode, message));
    }
    const FieldDescriptor* const sources =
        message.GetDescriptor()->FindFieldByName("sources");
    if (node.kind == YamlNode::Kind::kList && sources != nullptr) {
      return Field(node, *sources, Join(path, sources->name()), message);
    }
    if (node.kind != YamlNode::Kind::kMap) {
      const std::string label = path.empty() ? "" : absl::StrCat(path, ": ");
      return source_.Error(
          node, absl::StrCat(label, "expected fields, as in \"",
                             message.GetDescriptor()->field(0)->name(),
                             ": ...\", found ", FoundText(node)));
    }
    for (size_t i = 0; i < node.keys.size(); ++i) {
      const YamlNode& key = node.keys[i];
      ASSIGN_OR_RETURN(const FieldDescriptor* field,
                       Find(key, key.text, path, *message.GetDescriptor()));
      RETURN_IF_ERROR(
          Field(node.items[i], *field, Join(path, key.text), message));
    }
    return absl::OkStatus();
  }

  absl::Status Field(const YamlNode& node, const FieldDescriptor& field,
                     const std::string& path, Message& message) {
    positions_[path] = source_.At(node);
    if (field.is_map()) return Named(node, field, path, message);
    if (field.is_repeated()) return List(node, field, path, message);
    if (field.message_type() != nullptr) {
      Message& child =
          *message.GetReflection()->MutableMessage(&message, &field);
      return Section(node, path, child);
    }
    return Located(node, path, SetScalar(node, field, message));
  }

  absl::StatusOr<const FieldDescriptor*> Find(const YamlNode& place,
                                              const std::string& name,
                                              const std::string& path,
                                              const Descriptor& descriptor) {
    const FieldDescriptor* field = descriptor.FindFieldByName(name);
    if (field != nullptr) return field;
    return source_.Error(place,
                         absl::StrCat(Join(path, name), ": no such field; ",
                                      WayOut(name, descriptor, root_)));
  }

 private:
  absl::Status List(const YamlNode& node, const FieldDescriptor& field,
                    const std::string& path, Message& message) {
    if (node.kind == YamlNode::Kind::kScalar &&
        field.message_type() == nullptr) {
      message.GetReflection()->ClearField(&message, &field);
      return Item(node, field, path, message);
    }
    if (node.kind != YamlNode::Kind::kList) {
      return source_.Error(
          node, absl::StrCat(path, ": expected a list, as in ", field.name(),
                             ": [...], found ", FoundText(node)));
    }
    message.GetReflection()->ClearField(&message, &field);
    for (size_t i = 0; i < node.items.size(); ++i) {
      const std::string item_path = absl::StrCat(path, "[", i, "]");
      positions_[item_path] = source_.At(node.items[i]);
      RETURN_IF_ERROR(Item(node.items[i], field, item_path, message));
    }
    return absl::OkStatus();
  }

  // One of a list.
  absl::Status Item(const YamlNode& node, const FieldDescriptor& field,
                    const std::string& path, Message& message) {
    if (field.message_type() == nullptr) {
      return Located(node, path, SetScalar(node, field, message));
    }
    return Section(node, path,
                   *message.GetReflection()->AddMessage(&message, &field));
  }

  // Sections with names of the user's choice: a map from texts to messages.
  absl::Status Named(const YamlNode& node, const FieldDescriptor& field,
                     const std::string& path, Message& message) {
    if (node.kind == YamlNode::Kind::kNull) return absl::OkStatus();
    if (node.kind != YamlNode::Kind::kMap) {
      return source_.Error(
          node, absl::StrCat(path,
                             ": expected names with a section each, as "
                             "in ",
                             field.name(), ": {NAME: {...}}, found ",
                             FoundText(node)));
    }
    const Descriptor& entry_type = *field.message_type();
    for (size_t i = 0; i < node.keys.size(); ++i) {
      const std::string& name = node.keys[i].text;
      Message& entry = *message.GetReflection()->AddMessage(&message, &field);
      const google::protobuf::Reflection& set = *entry.GetReflection();
      set.SetString(&entry, entry_type.map_key(), name);
      const std::string item_path = Join(path, name);
      positions_[item_path] = source_.At(node.items[i]);
      RETURN_IF_ERROR(
          Section(node.items[i], item_path,
                  *set.MutableMessage(&entry, entry_type.map_value())));
    }
    return absl::OkStatus();
  }

  absl::Status Located(const YamlNode& node, const std::string& path,
                       const absl::Status& status) {
    if (status.ok()) return status;
    return source_.Error(node, absl::StrCat(path, ": ", status.message()));
  }

  const YamlSource& source_;
  const Descriptor& root_;
  PositionMap& positions_;
};

}  // namespace

std::vector<std::string> FieldPaths(const Descriptor& descriptor) {
  std::vector<std::string> paths;
  AddPaths(descriptor, "", paths);
  return paths;
}

absl::Status FillMessage(const YamlNode& root, const YamlSource& source,
                         Message& message, PositionMap& positions) {
  positions[""] = source.At(root);
  return Filler(source, *message.GetDescriptor(), positions)
      .Section(root, "", message);
}

absl::Status FillField(absl::string_view path, const YamlNode& value,
                       const YamlSource& source, Message& message,
                       PositionMap& positions) {
  Filler filler(source, *message.GetDescriptor(), positions);
  Message* parent = &message;
  const std::vector<std::string> names = absl::StrSplit(path, '.');
  std::string walked;
  for (size_t i = 0; i < names.size(); ++i) {
    ASSIGN_OR_RETURN(
        const FieldDescriptor* field,
        filler.Find(value, names[i], walked, *parent->GetDescriptor()));
    walked = Join(walked, names[i]);
    const bool is_last = i + 1 == names.size();
    if (is_last && value.kind == YamlNode::Kind::kNull) {
      parent->GetReflection()->ClearField(parent, field);
      positions.erase(walked);
      return absl::OkStatus();
    }
    if (is_last) return filler.Field(value, *field, walked, *parent);
    if (field->message_type() == nullptr) {
      return source.Error(value, absl::StrCat(walked, " has no fields"));
    }
    parent = parent->GetReflection()->MutableMessage(parent, field);
  }
  return absl::OkStatus();
}

}  // namespace troupe
