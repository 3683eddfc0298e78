// What a subcommand takes on its command line. CLI11, its size and its
// exceptions stay behind flags.cc and run.cc.
#ifndef TROUPE_CLIENTS_CLI_FLAGS_H_
#define TROUPE_CLIENTS_CLI_FLAGS_H_

#include <cstdint>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace troupe {

// Each call declares one argument; its value is written to the variable, which
// must outlive the parsing, when the user gives one. Texts are the help's.
class Flags {
 public:
  explicit Flags(CLI::App& app) : app_(app) {}

  struct Doc {
    const char* value = "TEXT";  // what stands for the value in the help
    const char* text = "";
  };

  // Arguments without a flag, in the order of declaration.
  void Required(const char* name, std::string& value, const char* text);
  void Optional(const char* name, std::string& value, const char* text);
  // One or more.
  void RequiredTexts(const char* name, std::vector<std::string>& values,
                     const char* text);

  // "--dir"; a flag that must be given ends in '!' (not shown).
  void Text(const char* flag, std::string& value, const Doc& doc);
  // May be given several times.
  void Texts(const char* flag, std::vector<std::string>& values,
             const Doc& doc);
  void Switch(const char* flag, bool& value, const char* text);
  // How often it is given.
  void Count(const char* flag, int& value, const char* text);
  // Refuses what is not finite.
  void Number(const char* flag, double& value, const Doc& doc);
  // Decimal; refuses what is not in [least, most].
  struct Range {
    int64_t least;
    int64_t most;
  };
  void Integer(const char* flag, int64_t& value, const Range& range,
               const Doc& doc);
  // One of the choices.
  void Choice(const char* flag, std::string& value,
              const std::vector<std::string>& choices, const char* text);

 private:
  CLI::App& app_;
};

}  // namespace troupe

#endif  // TROUPE_CLIENTS_CLI_FLAGS_H_
