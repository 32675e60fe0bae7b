// What the compiler does not find: promises that nobody waits for, conditions that are always true, needless assertions.
import eslint from "@eslint/js";
import { defineConfig } from "eslint/config";
import tseslint from "typescript-eslint";

export default defineConfig(
  // Generated; and the frame of a bundle, into which the build puts code.
  { ignores: ["lib", "src/models.ts", "src/shapes.ts", "src/lab/container.js"] },
  { linterOptions: { reportUnusedDisableDirectives: "error" } },
  eslint.configs.recommended,
  { files: ["**/*.mjs"], languageOptions: { globals: { process: "readonly" } } },
  {
    files: ["**/*.{ts,tsx}"],
    extends: [tseslint.configs.strictTypeChecked],
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      // Every access by index can be undefined to the compiler; "!" stands where a loop or a check has made sure.
      "@typescript-eslint/no-non-null-assertion": "off",
      // Components take their properties apart, functions too; methods of our classes that use `this` stay with it.
      "@typescript-eslint/unbound-method": "off",
      "@typescript-eslint/no-confusing-void-expression": ["error", { ignoreArrowShorthand: true }],
      "@typescript-eslint/no-floating-promises": [
        "error",
        { allowForKnownSafeCalls: [{ from: "package", name: "test", package: "node:test" }] },
      ],
      "@typescript-eslint/no-unused-vars": ["error", { argsIgnorePattern: "^_", varsIgnorePattern: "^_" }],
      "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true }],
    },
  },
);
