// Safetensors files of fixtures, changed: tensors taken away, put in, or moved
// from one file to another.
#ifndef TROUPE_TESTS_CLIENTS_HUGGING_FACE_EDIT_WEIGHTS_H_
#define TROUPE_TESTS_CLIENTS_HUGGING_FACE_EDIT_WEIGHTS_H_

#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

namespace troupe {

struct RawTensor {
  nlohmann::json description;  // dtype and shape
  std::string bytes;
};
using RawTensors = std::map<std::string, RawTensor>;

inline RawTensors ReadRawTensors(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string file{std::istreambuf_iterator<char>(in), {}};
  uint64_t header_bytes = 0;
  memcpy(&header_bytes, file.data(), sizeof(header_bytes));
  const auto header = nlohmann::json::parse(file.substr(8, header_bytes));
  RawTensors tensors;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") continue;
    const uint64_t begin = entry.at("data_offsets").at(0);
    const uint64_t end = entry.at("data_offsets").at(1);
    RawTensor& tensor = tensors[name];
    tensor.description = entry;
    tensor.bytes = file.substr(8 + header_bytes + begin, end - begin);
  }
  return tensors;
}

inline void WriteRawTensors(const std::string& path,
                            const RawTensors& tensors) {
  nlohmann::json header = {{"__metadata__", {{"format", "pt"}}}};
  std::string data;
  for (const auto& [name, tensor] : tensors) {
    header[name] = tensor.description;
    header[name]["data_offsets"] = {data.size(),
                                    data.size() + tensor.bytes.size()};
    data += tensor.bytes;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const uint64_t header_bytes = text.size();
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(reinterpret_cast<const char*>(&header_bytes), sizeof(header_bytes));
  out << text << data;
}

}  // namespace troupe

#endif  // TROUPE_TESTS_CLIENTS_HUGGING_FACE_EDIT_WEIGHTS_H_
