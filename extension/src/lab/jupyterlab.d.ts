// What the plugin uses of JupyterLab's packages. JupyterLab provides them at run time, so they are no dependencies of
// the build. In an application that lacks one of them, such as Notebook 7, its exports are undefined.

declare module "@lumino/signaling" {
  export interface ISignal<T, U> {
    connect(slot: (sender: T, args: U) => void): boolean;
    disconnect(slot: (sender: T, args: U) => void): boolean;
  }
}

declare module "@lumino/messaging" {
  export interface Message {
    readonly type: string;
  }
}

declare module "@lumino/coreutils" {
  export class Token<T> {
    constructor(name: string);
    readonly name: string;
    // Never set: distinguishes tokens of different services for the compiler.
    private readonly _: T;
  }
  export class MimeData {
    setData(mime: string, data: unknown): void;
  }
}

declare module "@lumino/dragdrop" {
  import type { MimeData } from "@lumino/coreutils";
  export class Drag {
    constructor(options: {
      mimeData: MimeData;
      dragImage?: HTMLElement;
      proposedAction: "copy";
      supportedActions: "copy";
      source: unknown;
    });
    start(x: number, y: number): Promise<string>;
    dispose(): void;
  }
}

declare module "@lumino/widgets" {
  import type { ISignal } from "@lumino/signaling";
  import type { Message } from "@lumino/messaging";
  export class Widget {
    constructor(options?: { node?: HTMLElement });
    readonly node: HTMLElement;
    readonly isDisposed: boolean;
    readonly isVisible: boolean;
    readonly isAttached: boolean;
    readonly isHidden: boolean;
    readonly parent: Widget | null;
    readonly disposed: ISignal<Widget, void>;
    readonly title: {
      label: string;
      caption: string;
      icon: unknown;
      iconClass: string;
      closable: boolean;
      className: string;
    };
    id: string;
    addClass(name: string): void;
    dispose(): void;
    show(): void;
    hide(): void;
    setHidden(hidden: boolean): void;
    protected onAfterShow(message: Message): void;
    protected onAfterHide(message: Message): void;
    protected onAfterAttach(message: Message): void;
    protected onBeforeDetach(message: Message): void;
    protected onActivateRequest(message: Message): void;
  }
  export class DockPanel extends Widget {
    readonly mode: "single-document" | "multiple-document";
    saveLayout(): { main: unknown };
    restoreLayout(layout: { main: unknown }): void;
  }
  export class TabPanel extends Widget {
    currentWidget: Widget | null;
  }
  export class Panel extends Widget {
    addWidget(widget: Widget): void;
    insertWidget(index: number, widget: Widget): void;
  }
}

declare module "@lumino/commands" {
  export interface CommandOptions {
    label: string | ((args: Record<string, unknown>) => string);
    caption?: string | ((args: Record<string, unknown>) => string);
    icon?: unknown;
    isEnabled?: (args: Record<string, unknown>) => boolean;
    isVisible?: (args: Record<string, unknown>) => boolean;
    isToggled?: (args: Record<string, unknown>) => boolean;
    describedBy?: unknown;
    execute(args: Record<string, unknown>): unknown;
  }
  export interface CommandRegistry {
    addCommand(id: string, options: CommandOptions): unknown;
    execute(id: string, args?: Record<string, unknown>): Promise<unknown>;
    hasCommand(id: string): boolean;
    notifyCommandChanged(id?: string): void;
  }
}

declare module "@jupyterlab/application" {
  import type { Token } from "@lumino/coreutils";
  import type { CommandRegistry } from "@lumino/commands";
  import type { ISignal } from "@lumino/signaling";
  import type { Widget } from "@lumino/widgets";
  import type { WidgetTracker } from "@jupyterlab/apputils";
  export interface JupyterFrontEnd {
    readonly commands: CommandRegistry;
    readonly serviceManager: { readonly serverSettings: unknown };
    readonly restored: Promise<unknown>;
    readonly shell: {
      readonly currentWidget: Widget | null;
      readonly currentChanged?: ISignal<unknown, unknown>;
      add(widget: Widget, area: string, options?: Record<string, unknown>): void;
      activateById(id: string): void;
    };
    contextMenuHitTest(test: (node: HTMLElement) => boolean): HTMLElement | undefined;
  }
  export interface JupyterFrontEndPlugin<T> {
    id: string;
    description: string;
    autoStart: boolean;
    provides?: Token<T>;
    requires?: Token<unknown>[];
    optional?: Token<unknown>[];
    // Services in the order of `requires` and `optional`; null for a missing optional one.
    activate(app: JupyterFrontEnd, ...services: never[]): T;
  }
  export interface ILayoutRestorer {
    add(widget: Widget, name: string): void;
    restore<W extends Widget>(
      tracker: WidgetTracker<W>,
      options: {
        command: string;
        args: (widget: W) => Record<string, unknown>;
        name: (widget: W) => string;
        when?: Promise<unknown>;
      },
    ): Promise<unknown>;
  }
  export const ILayoutRestorer: Token<ILayoutRestorer>;
  export interface ILabShell {
    readonly mode: "single-document" | "multiple-document";
  }
  export const ILabShell: Token<ILabShell>;
}

declare module "@jupyterlab/apputils" {
  import type { Token } from "@lumino/coreutils";
  import type { ISignal } from "@lumino/signaling";
  import type { Widget } from "@lumino/widgets";
  export class WidgetTracker<W extends Widget> {
    constructor(options: { namespace: string });
    readonly currentWidget: W | null;
    readonly size: number;
    add(widget: W): Promise<void>;
    save(widget: W): Promise<void>;
    find(test: (widget: W) => boolean): W | undefined;
    forEach(run: (widget: W) => void): void;
    has(widget: Widget): boolean;
  }
  export interface IWidgetTracker<W extends Widget> {
    readonly currentWidget: W | null;
    readonly currentChanged: ISignal<unknown, W | null>;
    readonly widgetAdded: ISignal<unknown, W>;
    forEach(run: (widget: W) => void): void;
  }
  export interface ISessionContext {
    readonly session: {
      readonly kernel: {
        readonly id: string;
        readonly info: Promise<{ readonly language_info: { readonly name: string } }>;
        hasComm(id: string): boolean;
      } | null;
    } | null;
    readonly ready: Promise<void>;
    readonly statusChanged: ISignal<unknown, string>;
    readonly kernelChanged: ISignal<unknown, unknown>;
    readonly iopubMessage: ISignal<unknown, unknown>;
  }
  export interface ICommandPalette {
    addItem(item: { command: string; category: string; args?: Record<string, unknown> }): {
      dispose(): void;
    };
  }
  export const ICommandPalette: Token<ICommandPalette>;
  export namespace Clipboard {
    function copyToSystem(text: string): void;
  }
  export const InputDialog: {
    getNumber(options: {
      title: string;
      label?: string;
      value?: number;
    }): Promise<{ value: number | null; button: { accept: boolean } }>;
    getText(options: {
      title: string;
      label?: string;
    }): Promise<{ value: string | null; button: { accept: boolean } }>;
    getItem(options: {
      title: string;
      items: readonly string[];
    }): Promise<{ value: string | null; button: { accept: boolean } }>;
  };
  export namespace Dialog {
    interface IButton {
      readonly accept: boolean;
    }
    function cancelButton(): IButton;
    function okButton(options: { label: string }): IButton;
    function warnButton(options: { label: string }): IButton;
  }
  export function showDialog<T = undefined>(options: {
    title: string;
    body: string | (Widget & { getValue(): T });
    buttons: readonly Dialog.IButton[];
    defaultButton?: number;
  }): Promise<{ readonly button: Dialog.IButton; readonly value: T | null }>;
  export function showErrorMessage(title: string, error: unknown): Promise<void>;
}

declare module "@jupyterlab/services" {
  export const ServerConnection: {
    makeSettings(): ServerConnection.ISettings;
    makeRequest(url: string, init: RequestInit, settings: ServerConnection.ISettings): Promise<Response>;
  };
  export namespace ServerConnection {
    interface ISettings {
      readonly baseUrl: string;
      readonly wsUrl: string;
      readonly token: string;
      readonly appendToken: boolean;
      readonly WebSocket: typeof WebSocket;
    }
  }
}

declare module "@jupyterlab/notebook" {
  import type { ISessionContext, IWidgetTracker } from "@jupyterlab/apputils";
  import type { IRenderMimeRegistry } from "@jupyterlab/rendermime";
  import type { Token } from "@lumino/coreutils";
  import type { ISignal } from "@lumino/signaling";
  import type { Widget } from "@lumino/widgets";
  export interface Notebook extends Widget {
    readonly rendermime: IRenderMimeRegistry;
    readonly model: {
      readonly sharedModel: { readonly cells: readonly { getSource(): string }[] };
    } | null;
    activeCellIndex: number;
    readonly activeCell: {
      readonly model: { readonly sharedModel: { setSource(text: string): void } };
    } | null;
  }
  export interface NotebookPanel extends Widget {
    readonly content: Notebook;
    readonly context: {
      readonly path: string;
      readonly ready: Promise<void>;
      readonly saveState: ISignal<unknown, string>;
      readonly model: { getMetadata(key: string): unknown };
    };
    readonly sessionContext: ISessionContext;
  }
  export type INotebookTracker = IWidgetTracker<NotebookPanel>;
  export const INotebookTracker: Token<INotebookTracker>;
  export const NotebookActions: {
    insertBelow(notebook: Notebook): void;
    runAndAdvance(notebook: Notebook, session: ISessionContext): Promise<boolean>;
  };
}

declare module "@jupyterlab/console" {
  import type { ISessionContext, IWidgetTracker } from "@jupyterlab/apputils";
  import type { IRenderMimeRegistry } from "@jupyterlab/rendermime";
  import type { Token } from "@lumino/coreutils";
  import type { Widget } from "@lumino/widgets";
  export interface ConsolePanel extends Widget {
    readonly console: { readonly rendermime: IRenderMimeRegistry };
    readonly sessionContext: ISessionContext;
  }
  export type IConsoleTracker = IWidgetTracker<ConsolePanel>;
  export const IConsoleTracker: Token<IConsoleTracker>;
}

declare module "@jupyterlab/rendermime" {
  import type { Token } from "@lumino/coreutils";
  import type { Widget } from "@lumino/widgets";
  export interface MimeModel {
    readonly data: Record<string, unknown>;
    readonly trusted: boolean;
    setData(options: { data: Record<string, unknown> }): void;
  }
  export interface Renderer extends Widget {
    renderModel(model: MimeModel): Promise<void>;
  }
  export interface IRenderMimeRegistry {
    addFactory(
      factory: { safe: boolean; mimeTypes: string[]; createRenderer: () => Renderer },
      rank: number,
    ): void;
    createRenderer(mimeType: string): Renderer;
    preferredMimeType(data: Record<string, unknown>, safe: "any" | "ensure"): string | undefined;
  }
  export const IRenderMimeRegistry: Token<IRenderMimeRegistry>;
}

declare module "@jupyterlab/settingregistry" {
  import type { Token } from "@lumino/coreutils";
  import type { ISignal } from "@lumino/signaling";
  export interface ISettings {
    readonly composite: Record<string, unknown>;
    readonly changed: ISignal<ISettings, void>;
    set(key: string, value: unknown): Promise<void>;
  }
  export interface ISettingRegistry {
    load(plugin: string): Promise<ISettings>;
  }
  export const ISettingRegistry: Token<ISettingRegistry>;
}

declare module "@jupyterlab/statedb" {
  import type { Token } from "@lumino/coreutils";
  export interface IStateDB {
    fetch(id: string): Promise<unknown>;
    save(id: string, value: unknown): Promise<unknown>;
  }
  export const IStateDB: Token<IStateDB>;
}

declare module "@jupyterlab/statusbar" {
  import type { Token } from "@lumino/coreutils";
  import type { Widget } from "@lumino/widgets";
  export interface IStatusBar {
    registerStatusItem(
      id: string,
      item: { item: Widget; align: "left" | "middle" | "right"; rank?: number; isActive?: () => boolean },
    ): unknown;
  }
  export const IStatusBar: Token<IStatusBar>;
}

declare module "@jupyterlab/translation" {
  import type { Token } from "@lumino/coreutils";
  export interface TranslationBundle {
    __(text: string, ...args: unknown[]): string;
    _n(one: string, many: string, count: number, ...args: unknown[]): string;
  }
  export interface ITranslator {
    load(domain: string): TranslationBundle;
  }
  export const ITranslator: Token<ITranslator>;
  export const nullTranslator: ITranslator;
}

declare module "@jupyterlab/ui-components" {
  // eslint-disable-next-line @typescript-eslint/no-extraneous-class -- all that is used of it
  export class LabIcon {
    constructor(options: { name: string; svgstr: string });
  }
}
