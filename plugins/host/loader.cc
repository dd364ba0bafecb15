#include <dlfcn.h>
#include <elf.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "planner/base/status_macros.h"
#include "plugins/abi/mergeplan_plugin.h"
#include "plugins/host/border.h"
#include "plugins/host/host.h"
#include "plugins/host/probe.h"

namespace mergeplan {
namespace {

namespace fs = std::filesystem;

bool IsFolder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

std::string Canonical(const fs::path& path) {
  std::error_code failure;
  const fs::path canonical = fs::canonical(path, failure);
  return failure ? path.string() : canonical.string();
}

// ---- the library's file, before any of its code runs

// A library that was cut short can kill the process when it is mapped (SIGBUS), so the places that
// its headers point to are checked against its length first. dlopen says the rest.
absl::Status CheckLibraryFile(const std::string& path) {
  std::error_code failure;
  const auto status = fs::status(path, failure);
  if (!fs::exists(status)) {
    return absl::NotFoundError(absl::StrCat(path, ": no such library; the manifest names it"));
  }
  if (!fs::is_regular_file(status)) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": found no file, expected a library"));
  }
  const std::uint64_t size = fs::file_size(path, failure);
  std::ifstream file(path, std::ios::binary);
  if (failure || !file) {
    return absl::PermissionDeniedError(absl::StrCat(path, ": cannot be read"));
  }
  const auto truncated = [&](const std::string& what) {
    return absl::DataLossError(absl::StrCat(path, ": truncated library: ", size, " bytes, but ",
                                            what, "; copy or build it again"));
  };
  Elf64_Ehdr header;
  file.read(reinterpret_cast<char*>(&header), sizeof(header));
  const bool magic = file.gcount() >= SELFMAG && std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0;
  if (!magic) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": found no ELF file, expected a shared library"));
  }
  if (file.gcount() < static_cast<std::streamsize>(sizeof(header))) {
    return truncated("its header is longer");
  }
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB ||
      header.e_type != ET_DYN || header.e_phentsize != sizeof(Elf64_Phdr)) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": found another kind of ELF file, expected a shared library of 64 bits"));
  }
  const auto beyond = [size](std::uint64_t offset, std::uint64_t length) {
    return offset > size || length > size - offset;
  };
  if (beyond(header.e_phoff, std::uint64_t{header.e_phnum} * sizeof(Elf64_Phdr))) {
    return truncated("its program headers lie beyond them");
  }
  for (unsigned k = 0; k < header.e_phnum; ++k) {
    Elf64_Phdr segment;
    file.seekg(static_cast<std::streamoff>(header.e_phoff + k * sizeof(segment)));
    file.read(reinterpret_cast<char*>(&segment), sizeof(segment));
    if (!file) return truncated("its program headers lie beyond them");
    if (segment.p_type != PT_NULL && beyond(segment.p_offset, segment.p_filesz)) {
      return truncated(
          absl::StrCat("its segment ", k, " ends at ", segment.p_offset + segment.p_filesz));
    }
  }
  if (beyond(header.e_shoff, std::uint64_t{header.e_shnum} * header.e_shentsize)) {
    return truncated("its section headers lie beyond them");
  }
  return absl::OkStatus();
}

// ---- what the library says of itself

absl::Status Disagree(std::string_view what, std::string_view library, std::string_view manifest) {
  return absl::FailedPreconditionError(
      absl::StrCat("manifest and library disagree: ", std::string(what), " is \"",
                   std::string(library), "\" in the library and \"", std::string(manifest),
                   "\" in the manifest; install the two of one build"));
}

absl::Status Same(std::string_view what, const char* library, const std::string& manifest) {
  const std::string text = border::OneLine(library);
  if (library == nullptr || text != manifest) {
    return Disagree(what, library == nullptr ? "missing" : text, manifest);
  }
  return absl::OkStatus();
}

std::string BoundText(bool has, double bound) {
  return has ? absl::StrCat(bound) : std::string("none");
}

absl::Status SameParameter(const mergeplan_parameter_spec* spec, const ParameterSpec& expected) {
  if (spec == nullptr) return absl::InvalidArgumentError("a parameter of the library is NULL");
  MP_RETURN_IF_ERROR(border::CheckSize("mergeplan_parameter_spec", spec->struct_size,
                                       MERGEPLAN_SIZE_1_0(mergeplan_parameter_spec, maximum)));
  const std::string what = absl::StrCat("parameter ", expected.name, ": ");
  MP_RETURN_IF_ERROR(Same("the name of a parameter", spec->name, expected.name));
  if (spec->type != static_cast<std::int32_t>(expected.type)) {
    return Disagree(what + "type", absl::StrCat(spec->type),
                    absl::StrCat(static_cast<int>(expected.type)));
  }
  if ((spec->has_minimum != 0 && !std::isfinite(spec->minimum)) ||
      (spec->has_maximum != 0 && !std::isfinite(spec->maximum))) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, "a bound in the library is not finite, expected a finite number"));
  }
  const auto same_bound = [&](const char* name, bool has, double bound,
                              std::optional<double> wanted) -> absl::Status {
    if (has == wanted.has_value() && (!has || bound == *wanted)) return absl::OkStatus();
    return Disagree(what + name, BoundText(has, bound),
                    BoundText(wanted.has_value(), wanted.value_or(0)));
  };
  MP_RETURN_IF_ERROR(
      same_bound("minimum", spec->has_minimum != 0, spec->minimum, expected.minimum));
  MP_RETURN_IF_ERROR(
      same_bound("maximum", spec->has_maximum != 0, spec->maximum, expected.maximum));
  if ((spec->default_value != nullptr) != expected.default_value.has_value()) {
    return Disagree(what + "default",
                    spec->default_value == nullptr ? "none" : border::OneLine(spec->default_value),
                    expected.default_value.value_or("none"));
  }
  if (spec->default_value == nullptr) return absl::OkStatus();
  if (expected.type == ParameterType::kReal) {
    // "0.50" and "0.5" are the same number.
    char* end = nullptr;
    const double number = std::strtod(spec->default_value, &end);
    if (*end == '\0' && end != spec->default_value && std::isfinite(number) &&
        number == std::strtod(expected.default_value->c_str(), nullptr)) {
      return absl::OkStatus();
    }
  }
  return Same(what + "default", spec->default_value, border::OneLine(*expected.default_value));
}

absl::Status CheckEntry(const mergeplan_plugin* entry, const Manifest& manifest) {
  if (entry == nullptr) {
    return absl::InvalidArgumentError(MERGEPLAN_PLUGIN_SYMBOL "() returned NULL");
  }
  MP_RETURN_IF_ERROR(border::CheckSize("mergeplan_plugin", entry->struct_size,
                                       MERGEPLAN_SIZE_1_0(mergeplan_plugin, abi_minor)));
  if (entry->abi_major != MERGEPLAN_ABI_MAJOR) {
    return absl::FailedPreconditionError(
        absl::StrCat("the library is for ABI ", entry->abi_major, ".", entry->abi_minor,
                     ", this host speaks ", MERGEPLAN_ABI_MAJOR, ".", MERGEPLAN_ABI_MINOR));
  }
  MP_RETURN_IF_ERROR(border::CheckSize("mergeplan_plugin", entry->struct_size,
                                       MERGEPLAN_SIZE_1_0(mergeplan_plugin, get_extension)));
  if (entry->abi_minor_needed > MERGEPLAN_ABI_MINOR) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the library needs ABI ", entry->abi_major, ".", entry->abi_minor_needed,
        " or newer, this host speaks ", MERGEPLAN_ABI_MAJOR, ".", MERGEPLAN_ABI_MINOR));
  }
  if (entry->plan == nullptr || entry->execute == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(entry->plan == nullptr ? "plan" : "execute",
                                                   " is NULL in the library, expected a function"));
  }
  MP_RETURN_IF_ERROR(Same("name", entry->name, manifest.name));
  MP_RETURN_IF_ERROR(Same("version", entry->version, manifest.version));
  MP_RETURN_IF_ERROR(Same("description", entry->description, manifest.description));
  // The minor of the header is the library's own affair: it changes when somebody builds it again.
  if (entry->abi_minor_needed != manifest.abi_minor_needed) {
    return Disagree("abi_minor_needed", absl::StrCat(entry->abi_minor_needed),
                    absl::StrCat(manifest.abi_minor_needed));
  }
  if (entry->teacher_needs != manifest.teacher_needs) {
    return Disagree("teacher_needs", absl::StrCat(entry->teacher_needs),
                    absl::StrJoin(TeacherTraitNames(manifest.teacher_needs), ", "));
  }
  if (entry->parameter_count != static_cast<std::int32_t>(manifest.parameters.size())) {
    return Disagree("the number of parameters", absl::StrCat(entry->parameter_count),
                    absl::StrCat(manifest.parameters.size()));
  }
  if (entry->parameter_count > 0 && entry->parameters == nullptr) {
    return absl::InvalidArgumentError("parameters is NULL in the library");
  }
  for (std::int32_t k = 0; k < entry->parameter_count; ++k) {
    MP_RETURN_IF_ERROR(SameParameter(entry->parameters[k], manifest.parameters[k]));
  }
  return absl::OkStatus();
}

// ---- names and folders

absl::StatusOr<std::string> ManifestOfPath(const std::string& path) {
  if (absl::EndsWith(path, ".toml")) return path;
  const std::string manifest = fs::path(path).replace_extension(".toml").string();
  std::error_code ignored;
  if (!fs::exists(manifest, ignored)) {
    if (!fs::exists(path, ignored)) {
      return absl::NotFoundError(absl::StrCat(path, ": no such plugin library"));
    }
    return absl::NotFoundError(absl::StrCat(path, ": its manifest ", manifest,
                                            " is missing; it belongs beside the library"));
  }
  return manifest;
}

// *.toml of a folder, sorted.
absl::StatusOr<std::vector<std::string>> ManifestsIn(const std::string& folder) {
  std::error_code failure;
  std::vector<std::string> out;
  for (fs::directory_iterator it(folder, failure), end; !failure && it != end;
       it.increment(failure)) {
    if (it->path().extension() == ".toml") out.push_back(it->path().string());
  }
  if (failure) {
    const std::string message =
        absl::StrCat(folder, ": ", failure.message(), "; expected a folder with plugins");
    return failure == std::errc::no_such_file_or_directory ? absl::NotFoundError(message)
                                                           : absl::InvalidArgumentError(message);
  }
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Plugin>> LoadFromManifest(const Manifest& manifest) {
  MP_RETURN_IF_ERROR(CheckAbi(manifest));
  const auto named = [&](const absl::Status& status) {
    return status.ok() ? status
                       : absl::Status(status.code(),
                                      absl::StrCat("plugin ", manifest.name, ": ", manifest.library,
                                                   ": ", status.message()));
  };
  if (const absl::Status file = CheckLibraryFile(manifest.library); !file.ok()) {
    return absl::Status(file.code(), absl::StrCat("plugin ", manifest.name, ": ", file.message()));
  }
  // Never closed: a plugin's threads, thread-local data or texts may outlive any use we know of.
  void* handle = dlopen(manifest.library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    return named(
        absl::InvalidArgumentError(absl::StrCat("cannot be loaded: ", border::OneLine(dlerror()))));
  }
  void* symbol = dlsym(handle, MERGEPLAN_PLUGIN_SYMBOL);
  if (symbol == nullptr) {
    return named(absl::InvalidArgumentError("exports no function " MERGEPLAN_PLUGIN_SYMBOL
                                            ", expected one (is it declared with "
                                            "MERGEPLAN_PLUGIN_EXPORT and extern \"C\"?)"));
  }
  const auto entry_function = reinterpret_cast<decltype(&mergeplan_plugin_entry)>(symbol);
  const mergeplan_plugin* entry = nullptr;
  MP_RETURN_IF_ERROR(named(border::CatchThrown([&] {
    entry = entry_function();
    return CheckEntry(entry, manifest);
  })));
  return std::shared_ptr<const Plugin>(new Plugin(manifest, entry));
}

absl::Status CheckLoads(const Manifest& manifest) {
  return TryLoading(absl::StrCat("plugin ", manifest.name, ": ", manifest.library),
                    [&] { return LoadFromManifest(manifest).status(); });
}

namespace {

absl::StatusOr<std::shared_ptr<const Plugin>> LoadWhatLoads(const Manifest& manifest) {
  MP_RETURN_IF_ERROR(CheckLoads(manifest));
  return LoadFromManifest(manifest);
}

}  // namespace

std::vector<std::string> PluginSearchPath(absl::Span<const std::string> extra) {
  std::vector<std::string> candidates(extra.begin(), extra.end());
  if (const char* variable = std::getenv("MERGEPLAN_PLUGIN_PATH"); variable != nullptr) {
    for (absl::string_view folder : absl::StrSplit(variable, ':', absl::SkipEmpty())) {
      candidates.emplace_back(folder);
    }
  }
  std::error_code failure;
  const fs::path program = fs::read_symlink("/proc/self/exe", failure);
  if (!failure) {
    const fs::path folder = program.parent_path();
    candidates.push_back((folder / "../lib/mergeplan/plugins").string());
    candidates.push_back((folder / "../../lib/mergeplan/plugins").string());
  }
  std::vector<std::string> out;
  std::set<std::string> seen;
  for (const std::string& candidate : candidates) {
    if (!IsFolder(candidate)) continue;
    std::string canonical = Canonical(candidate);
    if (seen.insert(canonical).second) out.push_back(std::move(canonical));
  }
  return out;
}

std::vector<PluginListing> ListPlugins(absl::Span<const std::string> extra) {
  std::vector<PluginListing> out;
  for (const std::string& folder : extra) {
    if (!IsFolder(folder)) {
      out.push_back({folder, fs::path(folder).filename().string(),
                     absl::NotFoundError(absl::StrCat(folder, ": no such folder of plugins")),
                     std::nullopt});
    }
  }
  std::map<std::string, std::string> first_found;
  for (const std::string& folder : PluginSearchPath(extra)) {
    const absl::StatusOr<std::vector<std::string>> manifests = ManifestsIn(folder);
    if (!manifests.ok()) {
      out.push_back(
          {folder, fs::path(folder).filename().string(), manifests.status(), std::nullopt});
      continue;
    }
    for (const std::string& path : *manifests) {
      PluginListing listing{path, fs::path(path).stem().string(), absl::OkStatus(), std::nullopt};
      const auto [found, is_first] = first_found.emplace(listing.name, path);
      absl::StatusOr<Manifest> manifest = ReadManifest(path);
      if (!manifest.ok()) {
        listing.status = manifest.status();
      } else {
        listing.manifest = *manifest;
        listing.status =
            is_first ? CheckLoads(*manifest)
                     : absl::AlreadyExistsError(absl::StrCat(path, ": plugin ", listing.name,
                                                             " is hidden by ", found->second));
      }
      out.push_back(std::move(listing));
    }
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const auto& a, const auto& b) { return a.name < b.name; });
  return out;
}

absl::StatusOr<Manifest> FindManifest(const std::string& name_or_path,
                                      absl::Span<const std::string> extra) {
  const bool is_path = name_or_path.find('/') != std::string::npos ||
                       absl::EndsWith(name_or_path, ".so") || absl::EndsWith(name_or_path, ".toml");
  if (is_path) {
    MP_ASSIGN_OR_RETURN(const std::string path, ManifestOfPath(name_or_path));
    MP_ASSIGN_OR_RETURN(Manifest manifest, ReadManifest(path));
    if (path != name_or_path && Canonical(manifest.library) != Canonical(name_or_path)) {
      return absl::FailedPreconditionError(absl::StrCat(
          path, ": library: found ", fs::path(manifest.library).filename().string(), ", expected ",
          fs::path(name_or_path).filename().string(), ", beside which it stands"));
    }
    return manifest;
  }
  const std::vector<std::string> folders = PluginSearchPath(extra);
  std::set<std::string> names;
  for (const std::string& folder : folders) {
    const absl::StatusOr<std::vector<std::string>> manifests = ManifestsIn(folder);
    if (!manifests.ok()) continue;
    for (const std::string& path : *manifests) {
      const std::string name = fs::path(path).stem().string();
      if (name == name_or_path) return ReadManifest(path);
      names.insert(name);
    }
  }
  for (const std::string& folder : extra) {
    if (!IsFolder(folder)) {
      return absl::NotFoundError(absl::StrCat("plugin ", name_or_path, ": not found, and ", folder,
                                              " is no folder of plugins"));
    }
  }
  return absl::NotFoundError(absl::StrCat(
      "plugin ", border::OneLine(name_or_path), ": not found; expected ",
      names.empty() ? "a plugin" : absl::StrCat("one of ", absl::StrJoin(names, ", ")), " in ",
      folders.empty() ? "a folder given by --plugin-dir or MERGEPLAN_PLUGIN_PATH"
                      : absl::StrJoin(folders, ", ")));
}

absl::StatusOr<std::shared_ptr<const Plugin>> LoadPlugin(
    const std::string& name_or_path, absl::Span<const std::string> extra,
    std::optional<std::uint64_t> teacher_gives) {
  MP_ASSIGN_OR_RETURN(const Manifest manifest, FindManifest(name_or_path, extra));
  if (teacher_gives) MP_RETURN_IF_ERROR(CheckTeacher(manifest, *teacher_gives));
  return LoadWhatLoads(manifest);
}

}  // namespace mergeplan
