// The container as which JupyterLab loads the bundle: the interface of module federation, without its tooling.
// JupyterLab calls `init` with the modules that it shares, and `get` for the plugin. WORKBENCH_* are filled in by the build.
(() => {
  let shared = {};
  // One that is missing, as in Notebook 7, is empty: what depends on it is left out.
  const load = async (name) => {
    const versions = Object.values(shared[name] ?? {});
    const found = versions.find((version) => version.loaded) ?? versions[0];
    return found ? [name, (await found.get())()] : [name, {}];
  };
  (globalThis._JUPYTERLAB ??= {})["WORKBENCH_NAME"] = {
    init(scope) {
      shared = scope;
    },
    async get() {
      const modules = Object.fromEntries(await Promise.all(WORKBENCH_SHARED.map(load)));
      const module = { exports: {} };
      ((module, exports, require) => {
        WORKBENCH_BUNDLE;
      })(module, module.exports, (name) => modules[name]);
      return () => module.exports;
    },
  };
})();
